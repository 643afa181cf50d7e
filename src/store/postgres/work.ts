/**
 * A batch, sorted into what the sections of the commit's statement need: by table instead of by run, coalesced, and in
 * the order in which rows are locked.
 */

import { transitionOf } from "../../core/run/transition.js";
import type { Batch, CursorWrite, Fence, Mail, NewRun, Transition } from "../contract/store.js";
import { type EventRow, packEvents } from "../shared/event-rows.js";
import { isRunId } from "./ids.js";

/** What happens to a task's row; from `mail` on it need not be the writer's own. */
export const move = { drain: 0, park: 1, finish: 2, mail: 3, release: 4 } as const;

export interface Move {
  readonly runId: string;
  readonly kind: number;
  readonly status: string | null;
  /** A parked run's `waiting`, a finished run's output. */
  readonly text: string | null;
  readonly error: string | null;
  /** `startedNow`: the instant of the commit. */
  readonly startedAt: number | null;
  /** Of a run that ends: how many events its log has. */
  readonly wakeAt: number | null;
  readonly wakeIn: number | null;
  /** How many messages: to be drained, or to be delivered. */
  readonly letters: number;
  /** null leaves them as they are. */
  readonly route: string | null;
  readonly priority: number | null;
}

export const startedNow = -1;
/** As `wakeIn`: the task stays due as it is. */
export const dueUnchanged = -1;

export interface NewEventRow extends EventRow {
  readonly runId: string;
  readonly seq: number;
}

export interface RunCursor extends CursorWrite {
  readonly runId: string;
}

export interface Work {
  readonly fence: Fence | null;
  /** Runs of which only the log is written: that they are the worker's is read, not locked. */
  readonly keeps: readonly string[];
  /** Task rows that are changed, in the order of their locks. */
  readonly moves: readonly Move[];
  readonly events: readonly NewEventRow[];
  readonly drained: readonly { readonly runId: string; readonly id: number }[];
  readonly mail: readonly Mail[];
  readonly starts: readonly NewRun[];
  readonly children: readonly NewRun[];
  /** Whether the usual may be taken for granted; if it is not so, the statement fails and is sent again without this. */
  readonly optimistic: boolean;
  /** None of the runs to be born can exist or be refused, as far as is known. */
  readonly allNew: boolean;
  readonly cursors: readonly RunCursor[];
  /** Each log ends where the batch says, as far as this process has written it. */
  readonly endsKnown: boolean;
  /** Messages to children of this very batch, whose rows no other part of the same statement can see. */
  readonly late: readonly Mail[];
}

export function workOf(batch: Batch, optimistic = false, knowsEnd: KnowsEnd = () => false): Work {
  const { transitions, fence } = batch;
  // Plain loops over what is mostly empty: this is done for every commit, and arrays of nothing add up.
  const born = new Set<string>();
  const letters: Mail[] = [];
  const release = new Set<string>();
  const own: Move[] = [];
  const keeps: string[] = [];
  const drained: { runId: string; id: number }[] = [];
  for (const transition of transitions) {
    const { runId, next } = transition;
    for (const { id } of transition.starts) born.add(id);
    for (const mail of transition.mail) if (isRunId(mail.to)) letters.push(mail);
    for (const id of transition.release) if (isRunId(id)) release.add(id);
    for (const id of transition.drained) drained.push({ runId, id });
    // A client's commit takes the run's lock whatever it does: nobody else guards it.
    if (next.kind === "keep" && transition.drained.length === 0 && fence !== null) keeps.push(runId);
    else own.push(moveOf(transition));
  }
  const mail = born.size === 0 ? letters : letters.filter(({ to }) => !born.has(to));
  const children = born.size === 0 ? [] : childrenOf(transitions, release);
  return {
    fence,
    keeps,
    moves: withAddressees(own, mail, release, born).sort(byRunId),
    events: eventsOf(transitions),
    drained,
    mail,
    starts: inKeyOrder(batch.starts),
    children: inKeyOrder(children),
    optimistic,
    allNew: optimistic && batch.starts.every(hasNoKey) && children.every(hasNoKey),
    cursors: cursorsOf(transitions),
    endsKnown: fence !== null && transitions.every((one) => isEndKnown(one, knowsEnd)),
    late: born.size === 0 ? [] : letters.filter(({ to }) => born.has(to)),
  };
}

export type KnowsEnd = (runId: string, end: number) => boolean;

/** Of a log that begins, the key tells: number 1 is free, or the statement fails. */
const isEndKnown = ({ runId, after, events }: Transition, knowsEnd: KnowsEnd) =>
  events.length === 0 || after === 0 || knowsEnd(runId, after);

function withAddressees(
  own: Move[],
  mail: readonly Mail[],
  release: ReadonlySet<string>,
  born: ReadonlySet<string>,
): Move[] {
  if (mail.length === 0 && release.size === 0) return own;
  const moves = new Map(own.map((one) => [one.runId, one]));
  for (const runId of release) if (!born.has(runId)) moves.set(runId, blank(runId, move.release));
  // Mail makes a parked run ready too, so it takes the place of a release.
  for (const { to } of mail) moves.set(to, { ...blank(to, move.mail), letters: (moves.get(to)?.letters ?? 0) + 1 });
  return [...moves.values()];
}

const childrenOf = (transitions: readonly Transition[], release: ReadonlySet<string>): NewRun[] =>
  transitions.flatMap((transition) => transition.starts.map((run) => released(run, release)));

/** The work of messages alone. */
export function mailWork(mail: readonly Mail[]): Work {
  const work = workOf({ fence: null, starts: [], transitions: [transitionOf("", 0, { mail })] });
  return { ...work, moves: work.moves.filter(({ kind }) => kind === move.mail) };
}

const released = (run: NewRun, release: ReadonlySet<string>): NewRun =>
  run.due.kind === "held" && release.has(run.id) ? { ...run, due: { kind: "now" } } : run;

function moveOf({ runId, next, drained, after, events }: Transition): Move {
  const letters = drained.length;
  if (next.kind === "keep") return { ...blank(runId, move.drain), letters };
  const startedAt = next.startedAt === "now" ? startedNow : next.startedAt;
  const { status } = next;
  if (next.kind === "finish") {
    const end = { text: next.output, error: next.error, startedAt, wakeAt: after + events.length };
    return { ...blank(runId, move.finish), status, ...end, letters };
  }
  const { wakeAt, route = null, priority = null } = next;
  const wakeIn = next.keepsDue ? dueUnchanged : next.wakeIn;
  const place = { wakeAt, wakeIn, route, priority };
  return { ...blank(runId, move.park), status, text: next.waiting, startedAt, ...place, letters };
}

const blank = (runId: string, kind: number): Move => ({
  runId,
  kind,
  status: null,
  text: null,
  error: null,
  startedAt: null,
  wakeAt: null,
  wakeIn: null,
  letters: 0,
  route: null,
  priority: null,
});

function eventsOf(transitions: readonly Transition[]): NewEventRow[] {
  const rows: NewEventRow[] = [];
  for (const { runId, after, events } of transitions) {
    if (events.length === 0) continue;
    const { type, node, attempt, outcome, data, span } = packEvents(events);
    rows.push({ runId, seq: after + 1, span, type, node, attempt, outcome, data });
  }
  return rows.sort(byRunId);
}

/** By key, where there is one, so that two batches with the same keys do not wait for each other in a circle. */
function inKeyOrder(runs: readonly NewRun[]): readonly NewRun[] {
  if (runs.every(hasNoKey)) return runs;
  // Of two with the same key the first is to win: then the order is the caller's.
  if (runs.length < 2 || hasTwice(runs.map(startKeyOf)) || hasTwice(runs.map(({ heroKey }) => heroKey))) return runs;
  return runs.toSorted(
    (a, b) =>
      compare(startKeyOf(a) ?? "", startKeyOf(b) ?? "") ||
      compare(a.heroKey ?? "", b.heroKey ?? "") ||
      compare(a.id, b.id),
  );
}

const hasNoKey = ({ startKey, heroKey }: NewRun) => startKey === null && heroKey === null;

const startKeyOf = ({ workflow, startKey }: NewRun) =>
  startKey === null ? null : JSON.stringify([workflow, startKey]);

function hasTwice(keys: readonly (string | null)[]): boolean {
  const given = keys.filter((key) => key !== null);
  return new Set(given).size < given.length;
}

/** One write per (run, node): a row cannot be updated twice in one statement. */
function cursorsOf(transitions: readonly Transition[]): RunCursor[] {
  const rows = new Map<string, RunCursor>();
  for (const { runId, cursors } of transitions) {
    for (const write of cursors) {
      const key = `${runId}/${write.node}`;
      rows.set(key, { ...rows.get(key), ...definedOf(write), runId });
    }
  }
  return [...rows.values()].sort((a, b) => compare(a.runId, b.runId) || compare(a.node, b.node));
}

function definedOf({ node, cursor, progress }: CursorWrite): CursorWrite {
  return { node, ...(cursor === undefined ? {} : { cursor }), ...(progress === undefined ? {} : { progress }) };
}

const byRunId = (a: { readonly runId: string }, b: { readonly runId: string }) => compare(a.runId, b.runId);
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
