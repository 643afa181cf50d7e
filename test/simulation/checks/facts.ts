/** What several checks derive from the evidence. */

import type { Fence } from "../../../src/store/contract/store.js";
import { type Evidence, isSameFence, type ReadEvent } from "../evidence.js";
import type { BodyEntry } from "../ledger.js";
import { type Ownership, ownerAt } from "./ownership.js";

/** A body that began, or an item of a resumable step. */
type Execution = Pick<BodyEntry, "process" | "run" | "fence" | "begunAfter">;

export class Facts {
  readonly ownership: Ownership;
  readonly #evidence: Evidence;
  readonly #logs = new Map<string, readonly ReadEvent[]>();
  /** By run: the entry of the journal that committed each event. */
  readonly #commits = new Map<string, number[]>();
  /** By process: entries after which its session was a new one, or none. */
  readonly #breaks = new Map<string, number[]>();
  /** By run: entries at which a write of a worker was refused. */
  readonly #evictions = new Map<string, { readonly seq: number; readonly process: string }[]>();

  /** By run: entries at which a commit that had failed took effect, and released the run or set a cursor back, without its worker knowing. */
  readonly #lateWrites = new Map<string, number[]>();
  /** By run: entries at which a worker claimed it. */
  readonly #claims = new Map<string, number[]>();
  /** By run: entries at which a write was accepted. */
  readonly #writes = new Map<string, number[]>();

  constructor(evidence: Evidence, ownership: Ownership) {
    this.#evidence = evidence;
    this.ownership = ownership;
    for (const [run, log] of evidence.logs)
      this.#logs.set(
        run,
        log.map((event) => ({ ...event, parsed: event.data === null ? {} : JSON.parse(event.data) })),
      );
    const processOf = new Map<string, string>();
    const addBreak = (process: string, seq: number) =>
      this.#breaks.set(process, [...(this.#breaks.get(process) ?? []), seq]);
    for (const entry of evidence.journal) {
      const { seq, process } = entry;
      if (entry.kind === "claimed") for (const run of entry.runIds) addTo(this.#claims, run, seq);
      if (entry.kind === "registered") {
        processOf.set(entry.fence.workerId, process);
        addBreak(process, seq);
      } else if (entry.kind === "fenced") addBreak(process, seq);
      else if (entry.kind === "freed") for (const id of entry.workerIds) addBreak(processOf.get(id) ?? "", seq);
      else if (entry.kind === "commit" && entry.result.kind === "committed") {
        for (const { runId, events, next, cursors } of entry.batch.transitions) {
          addTo(this.#writes, runId, seq);
          if (entry.isLate && (next.kind !== "keep" || cursors.length > 0)) addTo(this.#lateWrites, runId, seq);
          let commits = this.#commits.get(runId);
          if (commits === undefined) this.#commits.set(runId, (commits = []));
          for (const _ of events) commits.push(seq);
        }
      } else if (entry.kind === "commit" && entry.result.kind === "conflict") {
        const { runId } = entry.result;
        this.#evictions.set(runId, [...(this.#evictions.get(runId) ?? []), { seq, process }]);
      }
    }
    for (const { process, after } of evidence.deaths) addBreak(process, after + 1);
  }

  log(run: string): readonly ReadEvent[] {
    return this.#logs.get(run) ?? [];
  }

  /** The entry of the journal that committed this event. */
  committedAt(run: string, seq: number): number {
    return this.#commits.get(run)?.[seq - 1] ?? 0;
  }

  /** Whether the run has copied this event from the run that it retries. */
  isInherited(run: string, seq: number): boolean {
    const forked = this.log(run).find(({ type }) => type === "run.forked");
    return (
      forked !== undefined && this.committedAt(run, seq) === this.committedAt(run, forked.seq) && seq !== forked.seq
    );
  }

  /** The run that this one retries, and those before it. */
  ancestorsOf(run: string): readonly string[] {
    const from: unknown = this.log(run).find(({ type }) => type === "run.forked")?.parsed.from;
    return typeof from === "string" ? [from, ...this.ancestorsOf(from)] : [];
  }

  /** Whether the process that committed this event had been told before that it could not. */
  wasLate(run: string, seq: number): boolean {
    const entry = this.#evidence.journal[this.committedAt(run, seq) - 1];
    return entry?.kind === "commit" && entry.isLate;
  }

  /** By run: how many claims in a row have led to nothing but the note that the run was recovered, at each claim. */
  fruitlessDeliveries(): ReadonlyMap<string, readonly { readonly seq: number; readonly count: number }[]> {
    const counts = new Map<string, { seq: number; count: number }[]>();
    const current = new Map<string, number>();
    for (const entry of this.#evidence.journal) {
      if (entry.kind === "claimed") {
        for (const run of entry.runIds) {
          const count = (current.get(run) ?? 0) + 1;
          current.set(run, count);
          counts.set(run, [...(counts.get(run) ?? []), { seq: entry.seq, count }]);
        }
      } else if (entry.kind === "commit" && entry.result.kind === "committed") {
        for (const { runId, events, next } of entry.batch.transitions)
          if (next.kind !== "keep" || events.some(({ type }) => type !== "run.recovered")) current.delete(runId);
      }
    }
    return counts;
  }

  /**
   * How many of these executions were followed by another one although nothing had happened to their process or to its hold on the run. What happens
   * later, such as the worker's proper end, is no reason, and executions in a process that did not own the run any more count neither way.
   */
  countRepeated(executions: readonly Execution[]): number {
    const owned = executions.filter(({ run, fence, begunAfter }) => this.isOwner(run, fence, begunAfter));
    return owned.slice(1).filter((next, index) => !this.#isInterrupted(owned[index] as Execution, next.begunAfter))
      .length;
  }

  isOwner(run: string, fence: Fence | null, seq: number): boolean {
    return isSameFence(fence, ownerAt(this.ownership, run, seq));
  }

  wasClaimedBetween(run: string, after: number, before: number): boolean {
    return this.#claims.get(run)?.some((seq) => seq > after && seq < before) === true;
  }

  #isInterrupted({ process, run, begunAfter }: Execution, again: number): boolean {
    const isBetween = (seq: number) => seq > begunAfter && seq <= again;
    return (
      this.#breaks.get(process)?.some(isBetween) === true ||
      this.#lateWrites.get(run)?.some((late) => isBetween(late) || this.#isOfEarlierTurn(run, late, begunAfter)) ===
        true ||
      this.#evictions.get(run)?.some((eviction) => isBetween(eviction.seq) && eviction.process === process) === true
    );
  }

  /**
   * A late commit has released the run, and its process has claimed it again. Until the answer of that claim arrives, the process
   * goes on with its earlier turn, and executes what the turn of the claim executes again.
   */
  #isOfEarlierTurn(run: string, late: number, begunAfter: number): boolean {
    const claim = this.#claims.get(run)?.find((seq) => seq > late);
    return (
      claim !== undefined &&
      begunAfter >= claim &&
      this.#writes.get(run)?.some((seq) => seq > claim && seq <= begunAfter) !== true
    );
  }

  /** Whether the calls of the run may be made again after they were recorded. */
  canStartOver(run: string): boolean {
    return this.log(run).some(
      ({ type, parsed }) =>
        type === "run.moved" ||
        type === "node.reopened" ||
        ((type === "run.reattempted" || type === "step.reattempted") && parsed.rewind === true),
    );
  }

  /** The runs that executed the job of a node. */
  attemptRuns(run: string, node: string | null): readonly string[] {
    return this.#evidence.runs.flatMap(({ id, parentId, parentNode }) =>
      parentId === run && (parentNode === node || parentNode?.startsWith(`${node}/`) === true) ? [id] : [],
    );
  }

  isUndo(step: string): boolean {
    return step.endsWith("#compensate");
  }

  isTransactional(node: string | null): boolean {
    return node !== null && /^t\d+$/.test(node);
  }
}

function addTo(entries: Map<string, number[]>, key: string, seq: number): void {
  const known = entries.get(key);
  if (known === undefined) entries.set(key, [seq]);
  else known.push(seq);
}
