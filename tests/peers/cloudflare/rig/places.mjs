// Where things lie: sources beside this file, everything installed or written under PEERS_DIR.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { clients } from "./trees.mjs";

export const HERE = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
export const REPOSITORY = path.resolve(HERE, "../../..");
export const WORK = path.resolve(process.env.PEERS_DIR || path.join(HERE, ".work"));

export const toolsDir = path.join(WORK, "tools");
export const serverDir = (name) => path.join(WORK, "servers", name);
export const clientDir = (name) => {
  const { server } = clients[name];
  return server ? serverDir(server) : path.join(WORK, "clients", name);
};
export const bundle = (name, platform) => path.join(WORK, "bundles", `${name}.${platform}.mjs`);
