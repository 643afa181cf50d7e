/** I24: the occurrences of a schedule are exactly its instants, each once, and each that ran has its run. */
import type { Evidence, Report } from "../evidence.js";

export function checkSchedules(evidence: Evidence, report: Report): void {
  const runs = new Map(
    evidence.runs.flatMap((run) =>
      run.schedule === undefined || run.schedule.startsWith('{"gathering"') ? [] : [[run.id, run] as const],
    ),
  );
  const claimed = new Set<string>();
  for (const name of evidence.puts)
    if (!evidence.schedules.some((schedule) => schedule.name === name))
      report("I24", null, `Schedule ${name} was acknowledged and does not exist.`);
  for (const record of evidence.schedules) {
    const { name } = record;
    const everyMs = evidence.periods.get(name) as number;
    const pausedAt: number = JSON.parse(record.state).pause?.at ?? record.createdAt;
    const covered = new Map<number, number>();
    for (const { schedule, id, scheduledFor, scheduledUntil, count, outcome, detail } of evidence.occurrences) {
      if (schedule !== name) continue;
      let instants = detail.manual === true ? 1 : 0;
      for (let instant = scheduledFor; detail.manual !== true && instant <= scheduledUntil; instant += everyMs) {
        covered.set(instant, (covered.get(instant) ?? 0) + 1);
        instants += 1;
      }
      if (instants !== count)
        report(
          "I24",
          null,
          `A row of schedule ${name} stands for ${count} instants; there are ${instants} from ${scheduledFor} to ${scheduledUntil}.`,
        );
      if (outcome !== "ran") continue;
      const run = runs.get(id);
      claimed.add(id);
      if (run === undefined) report("I24", id, `Its occurrence of schedule ${name} ran, and it does not exist.`);
      else if (JSON.parse(run.schedule ?? "{}").scheduledFor !== scheduledFor)
        report("I24", id, "It is the run of another instant than its occurrence.");
    }
    for (const [instant, times] of covered) {
      if (times > 1) report("I24", null, `Instant ${instant} of schedule ${name} is in ${times} rows.`);
      if (instant % everyMs !== 0) report("I24", null, `Schedule ${name} has no instant ${instant}.`);
    }
    const last = Math.max(...covered.keys(), 0);
    const first = Math.floor(record.createdAt / everyMs) * everyMs + everyMs;
    for (let instant = first; instant <= Math.max(last, pausedAt - longestLatenessMs); instant += everyMs)
      if (!covered.has(instant)) report("I24", null, `Instant ${instant} of schedule ${name} is in no row.`);
  }
  for (const [id] of runs)
    if (!claimed.has(id)) report("I24", id, "It was started by a schedule, and no occurrence says so.");
}

/** A schedule that is paused this soon after an instant may not have fired it. */
const longestLatenessMs = 60_000;
