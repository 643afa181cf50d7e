/**
 * Starts a run for each file, by name, and does not wait. It has no workflow code.
 *
 *     trigger.js docs report.txt notes.txt
 *     trigger.js docs report.txt --workflow process_file_v2     this version
 *     trigger.js docs report.txt --canary 0.1                   the second version for a tenth of all files
 */
import { parseArgs } from "node:util";
import { connect, PawlError } from "pawl";
import type { FileRef, ProcessedFile } from "./contract.js";
import { versionFor } from "./rollout.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { workflow: { type: "string" }, canary: { type: "string", default: "0" } },
});
const [bucket = "", ...keys] = positionals;

const pawl = await connect(process.env.PAWL_URL);
try {
  for (const key of keys) {
    const name = values.workflow ?? versionFor(key, Number(values.canary));
    const run = await pawl.workflow<FileRef, ProcessedFile>(name).trigger({ bucket, key });
    console.log(`${run.id} ${name} ${key}`);
  }
} catch (error) {
  if (!(error instanceof PawlError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await pawl.close();
}
