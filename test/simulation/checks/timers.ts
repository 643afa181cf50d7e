/** I11: a timer fires once and not early, by the clock of the database; the same for waits with a time limit and for retries. */
import type { Evidence, ReadEvent, Report } from "../evidence.js";
import type { Facts } from "./facts.js";

export function checkTimers(evidence: Evidence, facts: Facts, report: Report): void {
  for (const { id } of evidence.runs) {
    const open = new Map<string, { readonly due: number; readonly kind: string }>();
    const failed = new Map<string, { readonly due: number; readonly recordedAt: number }>();
    for (const event of facts.log(id)) {
      if (facts.isInherited(id, event.seq)) continue;
      const key = event.node ?? "";
      const { type, parsed, at } = event;
      if (type === "timer.started") open.set(key, { kind: "timer", due: parsed.until ?? at + parsed.ms });
      else if (type === "wait.started" && parsed.timeoutMs !== undefined)
        open.set(key, { kind: "wait", due: at + parsed.timeoutMs });
      else if (type === "timer.fired" || type === "wait.timed_out") {
        const timer = open.get(key);
        if (timer === undefined)
          report("I11", id, `${type} of ${key} (event ${event.seq}) happened twice, or without a start.`);
        else if (at < timer.due) report("I11", id, `${type} of ${key} happened ${timer.due - at} ms early.`);
        open.delete(key);
      } else if (type === "wait.completed" || type === "wait.withdrawn") open.delete(key);
      if (type === "step.failed" && parsed.retryMs !== undefined)
        failed.set(`${key} ${event.attempt}`, {
          due: at + parsed.retryMs,
          recordedAt: facts.committedAt(id, event.seq),
        });
      if (isOverruled(event)) failed.clear();
    }
    for (const body of evidence.bodies) {
      if (body.run !== id || body.attempt === null) continue;
      const failure = failed.get(`${body.step} ${body.attempt - 1}`);
      // A process that stood still, and has lost the run, may have begun its attempt before this failure.
      if (failure === undefined || body.begunAfter < failure.recordedAt) continue;
      const { due } = failure;
      if (body.begunAt < due)
        report("I11", id, `Attempt ${body.attempt} at step ${body.step} began ${due - body.begunAt} ms early.`);
    }
  }
}

/** An operator, or a signal, may have a step attempted before its time. */
const isOverruled = ({ type }: ReadEvent) => type === "run.resumed" || type === "node.reopened" || type === "run.moved";
