/** I10: an acknowledged signal is recorded once and consumed at most once, in the order in which it was sent. */
import type { Evidence, Report } from "../evidence.js";
import type { Facts } from "./facts.js";

export function checkSignals(evidence: Evidence, facts: Facts, report: Report): void {
  for (const { id } of evidence.runs) {
    const byKey = new Map<string, number>();
    const consumed = new Set<number>();
    const names = new Map<number, string>();
    const given = new Map<string, number[]>();
    const awaited = new Map<string, { readonly names: readonly string[]; readonly mode: "any" | "all" }>();
    for (const { type, seq, node, parsed } of facts.log(id)) {
      if (type === "signal.received") {
        names.set(seq, parsed.name);
        if (parsed.key === undefined) continue;
        if (byKey.has(parsed.key)) report("I10", id, `Signal ${parsed.key} was recorded twice.`);
        byKey.set(parsed.key, seq);
      }
      if (type === "wait.started") awaited.set(node ?? "", { names: parsed.names, mode: parsed.mode });
      // What a retry inherits is judged in the log of the run that it retries. The copy lacks the signals that a wait had received before
      // it lost a race: other waits that passed over them would seem to have missed them.
      const isJudged = !facts.isInherited(id, seq);
      const wait = isJudged && type === "wait.timed_out" ? awaited.get(node ?? "") : undefined;
      if (wait !== undefined) {
        const there = wait.names.map((name) => [...names].find(([at, of]) => of === name && !consumed.has(at))?.[0]);
        if (wait.mode === "any" ? there.some((at) => at !== undefined) : !there.includes(undefined))
          report(
            "I10",
            id,
            `Wait ${node} timed out although signal ${there.find((at) => at !== undefined)} was there.`,
          );
      }
      if (type === "wait.completed") given.set(node ?? "", parsed.signals);
      // The wait has lost a race: the signals that it was given, and that the code has not seen, are there again.
      if (type === "wait.withdrawn") {
        for (const signal of given.get(node ?? "") ?? []) consumed.delete(signal);
      }
      const used: number[] =
        type === "wait.completed"
          ? parsed.signals
          : type === "run.resumed" && parsed.signal !== undefined
            ? [parsed.signal]
            : [];
      for (const signal of used) {
        if (consumed.has(signal)) report("I10", id, `Signal ${signal} was consumed twice.`);
        consumed.add(signal);
        const name = names.get(signal);
        if (name === undefined) {
          report("I10", id, `Event ${seq} consumed signal ${signal}, which was not recorded before.`);
          continue;
        }
        const missed = isJudged && [...names].find(([at, of]) => of === name && at < signal && !consumed.has(at));
        if (missed) report("I10", id, `Signal ${signal} was consumed before signal ${missed[0]} of the same name.`);
      }
    }
    const acknowledged = evidence.signals.filter(({ run }) => run === id);
    for (const { key } of acknowledged)
      if (!byKey.has(key)) report("I10", id, `Signal ${key} was acknowledged and is not in the log.`);
    for (const a of acknowledged)
      for (const b of acknowledged)
        if (
          a.acknowledgedAfter < b.sentAfter &&
          (byKey.get(a.key) ?? 0) > (byKey.get(b.key) ?? Number.POSITIVE_INFINITY)
        )
          report("I10", id, `Signal ${a.key} was acknowledged before ${b.key} was sent, and is recorded after it.`);
  }
}
