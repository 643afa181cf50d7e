/** I1: every acknowledged start exists exactly once, and nothing exists that was not started. I2: everything has ended. */
import type { Evidence, Report } from "../evidence.js";
import type { RunRow } from "../records.js";

export function checkStarts({ records, commands }: Evidence, report: Report): void {
  const byKey = new Map<string, RunRow[]>();
  for (const run of records.runs.values()) {
    if (run.startKey === null) continue;
    byKey.set(run.startKey, [...(byKey.get(run.startKey) ?? []), run]);
  }
  const starts = commands.filter(({ command }) => command === "start");
  const asked = new Set(starts.map(({ key }) => key));
  for (const { key, answer, isAcknowledged } of starts) {
    const found = byKey.get(String(key)) ?? [];
    if (found.length > 1) report("I1", found[1]?.id ?? null, `Start ${key} has ${found.length} runs.`);
    if (isAcknowledged && found[0]?.id !== answer?.run)
      report(
        "I1",
        answer?.run ?? null,
        `Start ${key} was acknowledged as this run, and is ${found[0]?.id ?? "not there"}.`,
      );
    if (answer?.answer === "refused") report("I1", null, `Start ${key} was refused: ${answer.error}`);
  }
  for (const run of records.runs.values()) {
    if (run.parentId !== null) continue;
    if (run.startKey === null || !asked.has(run.startKey)) report("I1", run.id, "No client has started it.");
  }
  for (const { command, run, answer } of commands)
    if (command !== "start" && answer?.error?.startsWith("RUN_NOT_FOUND"))
      report("I1", run, `A client was told that it does not exist when it sent "${command}".`);
}

export function checkAllEnded({ records }: Evidence, report: Report): void {
  const tasks = new Map(records.tasks.map((task) => [task.runId, task]));
  for (const { id, workflow, status, finishedAt, waiting } of records.runs.values()) {
    if (finishedAt !== null) continue;
    report(
      "I2",
      id,
      `It (${workflow}) has not ended: ${status}, ${JSON.stringify(tasks.get(id) ?? null)}, ${waiting}.`,
    );
  }
}
