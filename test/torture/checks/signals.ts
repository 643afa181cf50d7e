/** I10: an acknowledged signal exists once, is consumed at most once, and in order. */
import type { Command, Evidence, Report } from "../evidence.js";
import type { LogEvent, RunRow } from "../records.js";

export function checkSignals(evidence: Evidence, report: Report): void {
  const sent = new Map<string, Command[]>();
  for (const command of evidence.commands) {
    if (command.command !== "signal" || command.run === null) continue;
    sent.set(command.run, [...(sent.get(command.run) ?? []), command]);
  }
  for (const [run, log] of evidence.runs()) {
    const received = log.filter(({ type }) => type === "signal.received");
    const seqs = new Map<string, number>();
    for (const { seq, data } of received) {
      if (data.key === undefined) continue;
      if (seqs.has(data.key)) report("I10", run.id, `Signal ${data.key} was received twice.`);
      seqs.set(data.key, seq);
    }
    const buffered = evidence.records.inbox.filter(({ runId }) => runId === run.id).map(({ data }) => data);
    checkSent({ run, log, seqs, buffered }, sent.get(run.id) ?? [], report);
    checkConsumed(run, log, received, report);
  }
}

interface Inbound {
  readonly run: RunRow;
  readonly log: readonly LogEvent[];
  /** The sequence numbers of the signals in the log, by their keys. */
  readonly seqs: ReadonlyMap<string, number>;
  /** Messages that are still in the inbox. */
  readonly buffered: readonly string[];
}

function checkSent({ run, log, seqs, buffered }: Inbound, commands: readonly Command[], report: Report): void {
  const acknowledged = commands.filter(({ isAcknowledged }) => isAcknowledged);
  const asked = new Set(commands.map(({ key }) => key));
  for (const key of seqs.keys()) if (!asked.has(key)) report("I10", run.id, `No client has sent the signal ${key}.`);
  for (const one of acknowledged) {
    const { key, signal } = one;
    if (seqs.has(String(key)) || buffered.some((data) => data.includes(JSON.stringify(key)))) continue;
    // A run that completes or is canceled may drop a signal that reaches it at that moment, unless it waited for that
    // signal.
    const isTooLate = /completed|canceled/.test(run.status) && !waitedFor(log, one);
    report(
      isTooLate ? "note" : "I10",
      run.id,
      `The acknowledged signal ${signal} ${key} is lost; the run is ${run.status}.`,
    );
  }
  // Signals must be in the order of their acknowledgements if one was acknowledged before the other was sent.
  for (const one of acknowledged)
    for (const other of acknowledged) {
      if (one.signal !== other.signal || one.key === other.key) continue;
      if ((one.answer?.at ?? 0) >= firstSent(other, commands)) continue;
      const [a, b] = [seqs.get(String(one.key)), seqs.get(String(other.key))];
      if (a !== undefined && b !== undefined && a > b)
        report("I10", run.id, `Signal ${other.key} overtook ${one.key}, which was acknowledged before it was sent.`);
    }
}

/** Whether a wait for such a signal timed out after the signal was acknowledged. */
function waitedFor(log: readonly LogEvent[], { signal, answer }: Command): boolean {
  const waits = log.filter(({ type, data }) => type === "wait.started" && data.names.includes(signal));
  const isLate = ({ type, node, at }: LogEvent) =>
    type === "wait.timed_out" && at > (answer?.at ?? 0) && waits.some((wait) => wait.node === node);
  return log.some(isLate);
}

const firstSent = ({ key }: Command, commands: readonly Command[]): number =>
  Math.min(...commands.filter((one) => one.key === key).map(({ at }) => at));

function checkConsumed(run: RunRow, log: readonly LogEvent[], received: readonly LogEvent[], report: Report): void {
  const byseq = new Map(received.map((one) => [one.seq, one]));
  const consumed = new Map<number, string>();
  const lastOf = new Map<string, number>();
  for (const { type, node, data, seq } of log) {
    const signals: number[] =
      type === "wait.completed" ? data.signals : type === "run.resumed" && data.by === "signal" ? [data.signal] : [];
    for (const number of signals) {
      const signal = byseq.get(number);
      if (signal === undefined || number > seq) {
        report("I10", run.id, `Event ${seq} consumes signal ${number}, which is not there.`);
        continue;
      }
      if (consumed.has(number))
        report("I10", run.id, `Signal ${number} is consumed by ${consumed.get(number)} and ${node}.`);
      consumed.set(number, String(node));
      const { name } = signal.data;
      if ((lastOf.get(name) ?? 0) > number)
        report("I10", run.id, `Signal ${number} (${name}) is consumed out of order.`);
      lastOf.set(name, number);
    }
  }
  if (run.workflow !== "listener" || run.status !== "completed") return;
  const waits = log.filter(({ type }) => type === "wait.completed");
  const payloads = waits.map(({ data }) => byseq.get(data.signals[0])?.data.payload ?? null);
  const { heard } = JSON.parse(run.output ?? "{}");
  if (JSON.stringify(heard) !== JSON.stringify(payloads))
    report("I10", run.id, `It heard ${JSON.stringify(heard)}; recorded is ${JSON.stringify(payloads)}.`);
}
