// `npm pack`: the published package.json has no commands for work on the repository, whose files are not published. The one
// of the repository is kept beside it meanwhile, and put back behind.

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const file = "package.json";
const kept = ".package.json.kept";

if (existsSync(kept)) renameSync(kept, file);
if (process.argv[2] !== "restore") {
  const whole = readFileSync(file, "utf8");
  const { scripts: _, devDependencies: __, allowScripts: ___, ...published } = JSON.parse(whole);
  writeFileSync(kept, whole);
  writeFileSync(file, `${JSON.stringify(published, null, 2)}\n`);
}
