/** I12: parents and children agree, and no child outlives its parent. */
import type { Evidence, Report } from "../evidence.js";
import type { Facts } from "./facts.js";

export function checkChildren(evidence: Evidence, facts: Facts, report: Report): void {
  const runs = new Map(evidence.runs.map((run) => [run.id, run]));
  /** By run: the entry of the journal that ended it. */
  const ends = new Map<string, number>();
  for (const entry of evidence.journal)
    if (entry.kind === "commit" && entry.result.kind === "committed")
      for (const { runId, next } of entry.batch.transitions) if (next.kind === "finish") ends.set(runId, entry.seq);
  for (const child of evidence.runs) {
    if (child.parentId === null) continue;
    const parent = runs.get(child.parentId);
    if (parent === undefined) {
      report("I12", child.id, "Its parent does not exist.");
      continue;
    }
    if (parent.finishedAt !== null && child.finishedAt === null)
      report("I12", child.id, "Its parent has ended, and it has not.");
    if (child.status === "completed" && (ends.get(child.id) ?? 0) > (ends.get(parent.id) ?? Number.POSITIVE_INFINITY))
      report("I12", child.id, "It went on after its parent had ended, and completed.");
    const log = facts.log(parent.id);
    if (child.parentIndex !== null) {
      const settled = log.filter(({ type, node }) => type === "map.settled" && node === child.parentNode);
      for (const { parsed } of settled) {
        const has = (ranges: [number, number][]) =>
          ranges.some(
            ([first, last]) => first <= (child.parentIndex as number) && (child.parentIndex as number) <= last,
          );
        if (has(parsed.completed) && child.status !== "completed")
          report("I12", child.id, `Its parent has it as completed; it is ${child.status}.`);
        if (has(parsed.failed) && child.status === "completed")
          report("I12", child.id, "Its parent has it as failed; it is completed.");
      }
      const times = settled.filter(({ parsed }) =>
        [...parsed.completed, ...parsed.failed].some(
          ([first, last]: [number, number]) =>
            first <= (child.parentIndex as number) && (child.parentIndex as number) <= last,
        ),
      ).length;
      if (times > 1) report("I12", child.id, `Its parent has settled it ${times} times.`);
    } else if (child.parentAttempt === null) {
      const started = log.find(({ type, parsed }) => type === "child.started" && parsed.runId === child.id);
      if (started === undefined) report("I12", child.id, "Its parent's log has not started it.");
      const recorded = log.filter(
        ({ type, node }) => /^child\.(completed|failed|canceled)$/.test(type) && node === started?.node,
      );
      if (recorded.length > 1) report("I12", child.id, `Its parent has recorded ${recorded.length} ends of it.`);
      for (const { type, parsed } of recorded) {
        if (type !== `child.${child.status}`) report("I12", child.id, `It is ${child.status}; its parent has ${type}.`);
        else if (type === "child.completed" && JSON.stringify(parsed.output) !== child.output)
          report("I12", child.id, "Its parent has another output.");
      }
    }
  }
  for (const { id } of evidence.runs)
    for (const { type, parsed } of facts.log(id))
      if (type === "child.started" && !runs.has(parsed.runId))
        report("I12", id, `Its child ${parsed.runId} does not exist.`);
}
