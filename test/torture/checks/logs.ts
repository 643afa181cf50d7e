/** I8: logs have no gaps and are only appended to. I9: an end never changes and is the last event. */
import type { Evidence, Report } from "../evidence.js";
import type { Snapshot } from "../snapshots.js";

export function checkLogs({ records }: Evidence, report: Report): void {
  let [run, next] = ["", 1];
  for (const row of records.spans) {
    if (row.run !== run) [run, next] = [row.run, 1];
    if (!records.runs.has(run)) report("I8", run, `There are events of run ${run}, which does not exist.`);
    if (row.seq !== next) report("I8", run, `After event ${next - 1} comes event ${row.seq}.`);
    if (row.held !== row.span)
      report("I8", run, `The row of event ${row.seq} spans ${row.span} and holds ${row.held}.`);
    next = row.seq + row.span;
  }
}

export function checkEndings(evidence: Evidence, report: Report): void {
  for (const [run, log] of evidence.runs()) {
    const { id, finishedAt, status } = run;
    const isEnded = ["completed", "failed", "canceled"].includes(status);
    if (isEnded !== (finishedAt !== null)) report("I9", id, `It is ${status} and finished at ${finishedAt}.`);
    if (log.some(({ type }) => /^run\.(completed|failed|canceled)$/.test(type)))
      report("I9", id, "It has a second end, in its log.");
    if (finishedAt !== null && log.some(({ at }) => at > finishedAt))
      report("I9", id, "Something happened after its end.");
    const starts = log.filter(({ type }) => type === "run.started").length;
    if (starts > 1) report("I9", id, `It started ${starts} times.`);
    if (status === "completed" && run.output === null) report("I9", id, "It is completed and has no output.");
  }
}

/** `last` is a snapshot at the end of the campaign. */
export function checkSnapshots({ snapshots }: Evidence, last: Snapshot, report: Report): void {
  for (const { rows, endings, at } of snapshots) {
    const time = new Date(at).toISOString();
    for (const [key, digest] of rows)
      if (last.rows.get(key) !== digest)
        report(
          "I8",
          key.split(" ")[0] ?? null,
          `Row ${key} of the log was there at ${time} and ${gone(last.rows, key)}.`,
        );
    for (const [run, digest] of endings)
      if (last.endings.get(run) !== digest)
        report("I9", run, `Its end, as it was at ${time}, ${gone(last.endings, run)}.`);
  }
}

const gone = (now: ReadonlyMap<string, string>, key: string) => (now.has(key) ? "has changed" : "is gone");
