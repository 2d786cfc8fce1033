// The installed tools live outside the source tree, so a bare `import "ws"` would not find them.
import { createRequire } from "node:module";
import path from "node:path";
import { toolsDir } from "./places.mjs";

export const requireTool = createRequire(path.join(toolsDir, "package.json"));
