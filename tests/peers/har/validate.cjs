// node validate.cjs FILE...    one line of JSON a file: the complaints of har-validator, [] if none
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

const from = createRequire(path.join(process.env.HAR_WORK, "x.js"));
const validate = from("har-validator");

(async () => {
  for (const file of process.argv.slice(2)) {
    let complaints = [];
    try {
      await validate.har(JSON.parse(fs.readFileSync(file, "utf8")));
    } catch (error) {
      complaints = (error.errors ?? [error]).map((e) => `${e.dataPath ?? ""} ${e.message}`);
    }
    console.log(JSON.stringify(complaints));
  }
})();
