// Bundles the one client page against each client tree: once for Node + jsdom, once for a browser.
import fs from "node:fs";
import path from "node:path";
import { HERE, bundle, clientDir } from "./places.mjs";
import { requireTool } from "./tools.mjs";

const nodeOptions = {
  platform: "node",
  // bundled CommonJS packages still call require()
  banner: { js: "import{createRequire}from'module';const require=createRequire(import.meta.url);" },
};

export async function buildClients(names) {
  const { build } = requireTool("esbuild");
  for (const name of names) {
    for (const platform of ["node", "browser"]) {
      await build({
        entryPoints: [path.join(HERE, "clients/page.jsx")],
        outfile: bundle(name, platform),
        bundle: true,
        format: "esm",
        jsx: "automatic",
        logLevel: "error",
        nodePaths: [path.join(clientDir(name), "node_modules")],
        define: { "process.env.NODE_ENV": '"development"' },
        external: ["@modelcontextprotocol/*"],
        ...(platform === "node" ? nodeOptions : { platform: "browser" }),
      });
    }
    const version = (p) => JSON.parse(fs.readFileSync(path.join(clientDir(name), "node_modules", p, "package.json"))).version;
    const shown = ["agents", "ai", "@ai-sdk/react", "react"].map((p) => `${p} ${version(p)}`);
    console.log(`${name}: ${shown.join(", ")}`);
  }
}
