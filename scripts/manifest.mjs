// `npm pack`: the published package.json has no commands for work on the repository, whose files are not published. The
// repository's own package.json is kept beside it meanwhile and restored afterwards.

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
