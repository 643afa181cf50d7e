import { readFileSync, writeFileSync } from "node:fs";
import { CliError, sentenceOf } from "../cli-error.js";
import { type Call, command } from "../command.js";
import { withPawl } from "../database.js";
import { findJsonErrorPosition } from "../json-error-position.js";
import { findRunId } from "../run-lookup.js";

const actions: Readonly<Record<string, (call: Call) => Promise<void>>> = { export: exportDag, import: importDag };

export const dag = command({
  name: "dag",
  about: "Export the graph of a run as JSON, or import it after editing",
  args: ["<export|import>", "<run>", "[file]"],
  options: {},
  actions: Object.keys(actions),
  example: "pawl dag export f09ab42c graph.json",
  takesFiles: true,

  run: async (call) => {
    const [action] = call.args as [string];
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (act === undefined)
      throw new CliError(`A graph can be exported or imported: pawl dag export|import, not "${action}".`);
    await act(call);
  },
});

/** Writes the graph to the file, or to standard output if no file is named. */
function exportDag(call: Call): Promise<void> {
  const [, text, file] = call.args as [string, string, string | undefined];
  const { out } = call;
  return withPawl(call, async (pawl) => {
    const run = pawl.run(await findRunId(pawl, text));
    const json = await run.exportDag();
    if (file === undefined) return out.print(JSON.parse(json), () => json);
    writeFileSync(file, `${json}\n`);
    out.print({ runId: run.id, file }, () => `Wrote the graph of run ${run.id} to ${file}.`);
  });
}

/** Reads the graph from the file, or from standard input if no file or "-" is named. */
function importDag(call: Call): Promise<void> {
  const [, text, file = "-"] = call.args as [string, string, string | undefined];
  const json = read(file);
  const errorPosition = findJsonErrorPosition(json);
  if (errorPosition !== null)
    throw new CliError(`${file === "-" ? "Standard input" : file} is not valid JSON: it breaks at ${errorPosition}.`);
  return withPawl(call, async (pawl) => {
    const run = pawl.run(await findRunId(pawl, text));
    await run.importDag(json);
    call.out.print(await run.get(), () => `Run ${run.id} uses this graph from now on; continue it with: pawl resume`);
  });
}

function read(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${sentenceOf(error)}`);
  }
}
