// The product between the two cables, as a person would start it.
import fs from "node:fs";
import path from "node:path";
import { REPOSITORY, WORK } from "./places.mjs";
import { freePort, listens, start, stop, until } from "./process.mjs";

const START_MS = 30_000;
const STARTS = 2; // a busy machine, or a port that another took meanwhile
const COMMAND = (process.env.MIDSTREAM || "uv run midstream").split(" ");

export class Midstream {
  /** `host` is gateway or mitm; `declare` the client profile to configure, if any. */
  constructor({ host, upstream, declare = null, label }) {
    Object.assign(this, { host, upstream, declare, label });
  }

  async start() {
    for (let tries = 1; ; tries++) {
      try {
        return await this.startOnce();
      } catch (error) {
        if (tries === STARTS) throw error;
        console.log(`midstream is started again: ${error.message}`);
      }
    }
  }

  async startOnce() {
    this.port = await freePort();
    this.admin = await freePort();
    this.address = `127.0.0.1:${this.port}`;
    const [program, ...first] = COMMAND;
    const log = path.join(WORK, "logs", `midstream-${this.label}.log`);
    this.running = start(program, [...first, ...this.arguments()], { cwd: REPOSITORY, log });
    try {
      await until(async () => this.running.exited || (await listens(this.port)), START_MS, "midstream to listen");
      if (this.running.exited) throw new Error("midstream ended at once");
    } catch (error) {
      await this.stop();
      throw new Error(`${error.message}\n${fs.readFileSync(log, "utf8").slice(-1500)}`);
    }
  }

  stop(signal = "SIGTERM") {
    return stop(this.running, { signal, graceMs: 3000 });
  }

  async metrics() {
    const response = await fetch(`http://127.0.0.1:${this.admin}/metrics`, { signal: AbortSignal.timeout(3000) });
    return response.text();
  }

  arguments() {
    const config = this.needsFile() ? ["--config", this.writeConfig()] : [];
    if (this.host === "gateway") {
      if (config.length) return ["run", ...config];
      return [
        "run", "--upstream", `http://${this.upstream}`,
        "--listen", this.address, "--admin", `127.0.0.1:${this.admin}`,
      ];
    }
    return [
      "mitm", ...config, "--",
      "--mode", `reverse:http://${this.upstream}`, "--listen-host", "127.0.0.1",
      "--listen-port", String(this.port), "--set", "termlog_verbosity=warn",
    ];
  }

  // the mitm verb has no --admin flag, and a profile can only be declared in a file
  needsFile() {
    return this.host === "mitm" || this.declare !== null;
  }

  writeConfig() {
    const file = path.join(WORK, "run", `midstream-${this.label}.toml`);
    const lines = [`admin = "127.0.0.1:${this.admin}"`];
    if (this.host === "gateway") {
      lines.push(`listen = "${this.address}"`, "[[route]]", 'name = "chat"', `upstream = "http://${this.upstream}"`);
    }
    if (this.declare) lines.push("[addon.replay-overlap]", `client = "${this.declare}"`);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, lines.join("\n") + "\n");
    return file;
  }
}
