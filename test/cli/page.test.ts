/**
 * docs/cli.md shows the output of the command line. Its commands are run here in their order; where the output differs
 * from the page (except for times and the like), the page is wrong. `npm test -- test/cli/page.test.ts -u` corrects it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "pawl";
import { expect, test } from "vitest";
import { until } from "../support/waiting.js";
import { type CliProcess, type Folder, newFolder, program } from "./command-line.js";
import { silent } from "./sample-runs.js";
import { commandsOf, Ids, normalizeOutput, withOutputs } from "./transcript.js";

const file = fileURLToPath(new URL("../../docs/cli.md", import.meta.url));

test("docs/cli.md shows the real output of the commands", { timeout: 600_000 }, async () => {
  const page = readFileSync(file, "utf8");
  const folder = newFolder();
  const [, workflows] = /^```ts\n([\s\S]*?)^```$/m.exec(page) ?? [];
  folder.write("workflows.ts", workflows as string);
  folder.write("bin/pawl", `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`);
  chmodSync(join(folder.path, "bin/pawl"), 0o755);

  const commands = commandsOf(page);
  const isWorker = (command: string) => command.startsWith("pawl worker ");
  const ids = new Ids(commands.filter(({ command }) => !isWorker(command)));
  const outputs: string[] = [];
  let worker: { readonly index: number; readonly process: CliProcess } | undefined;
  for (const [index, { command }] of commands.entries()) {
    if (isWorker(command)) {
      worker = { index, process: folder.begin(command.split(" ").slice(1)) };
      await worker.process.until("serves");
      continue;
    }
    const output = await runCommand(folder, ids.toMade(command));
    ids.note(output);
    outputs[index] = output;
    await untilIdle(folder);
  }
  // The worker printed its lines while the other commands ran.
  if (worker === undefined) throw new Error("The page starts no worker.");
  const { stdout } = await worker.process.stop();
  outputs[worker.index] = stdout.replace(/(?=^Worker \S+ has stopped)/m, "^C\n");

  const shown = commands.map((one, index) => {
    const printed = ids.toPage(outputs[index] as string);
    return normalizeOutput(printed) === normalizeOutput(one.output) ? one.output : printed;
  });
  await expect(withOutputs(page, shown)).toMatchFileSnapshot(file);
});

/** The combined output of both streams, as a terminal shows it. Only what needs a shell has one, and a process of its own. */
async function runCommand(folder: Folder, command: string): Promise<string> {
  const words = plainWords(command);
  if (words !== null) {
    const { stdout, stderr } = await folder.pawl(...words.slice(1));
    return stdout + stderr;
  }
  const env = { ...process.env, PATH: `${join(folder.path, "bin")}:${process.env.PATH}`, TZ: "UTC" };
  const child = spawn("sh", ["-c", `(${command}) 2>&1`], { cwd: folder.path, env });
  let output = "";
  child.stdout.on("data", (text) => {
    output += text;
  });
  await once(child, "close");
  return output;
}

/** The words of a command without pipes, variables and the like. */
function plainWords(command: string): string[] | null {
  const word = /'[^']*'|"[^"$`\\]*"|[^\s'"|&;<>$`\\()]+/g;
  if (command.replaceAll(word, "").trim() !== "") return null;
  return (command.match(word) ?? []).map((text) => text.replace(/^(['"])(.*)\1$/s, "$2"));
}

/** Resolves when the worker has nothing left that it can do now. */
async function untilIdle({ url }: Folder): Promise<void> {
  const pawl = await connect(url, { logger: silent });
  await until(async () => {
    const { runs } = await pawl.runs({ active: true });
    // Only the task row tells whether a parked run is due.
    const infos = await Promise.all(runs.map(({ id }) => pawl.run(id).get()));
    const areIdle = infos.every(
      ({ status, explanation }) => (status === "waiting" || status === "paused") && explanation === null,
    );
    // `pawl queues` shows what the worker executed when it sent its last heartbeat.
    return areIdle && (await pawl.queues()).every(({ executing }) => executing === 0);
  });
  await pawl.close();
}
