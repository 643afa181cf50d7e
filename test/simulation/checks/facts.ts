/** What several checks derive from the evidence. */

import type { Evidence, ReadEvent } from "../evidence.js";
import type { BodyEntry } from "../ledger.js";
import type { Ownership } from "./ownership.js";

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
      if (entry.kind === "registered") {
        processOf.set(entry.fence.workerId, process);
        addBreak(process, seq);
      } else if (entry.kind === "fenced") addBreak(process, seq);
      else if (entry.kind === "freed") for (const id of entry.workerIds) addBreak(processOf.get(id) ?? "", seq);
      else if (entry.kind === "commit" && entry.result.kind === "committed") {
        for (const { runId, events } of entry.batch.transitions) {
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

  /** Whether the process that committed this event had been told before that it could not. */
  wasLate(run: string, seq: number): boolean {
    const entry = this.#evidence.journal[this.committedAt(run, seq) - 1];
    return entry?.kind === "commit" && entry.isLate;
  }

  /** Whether something happened to the process or to its hold on the run after the body began. */
  wasInterrupted({ process, run, begunAfter }: Pick<BodyEntry, "process" | "run" | "begunAfter">): boolean {
    const isBroken = this.#breaks.get(process)?.some((seq) => seq > begunAfter) === true;
    return (
      isBroken ||
      this.#evictions.get(run)?.some((eviction) => eviction.seq > begunAfter && eviction.process === process) === true
    );
  }

  /** Whether the run ended although bodies may have been under way: it was canceled, it failed, or its code did not wait for them. */
  hasEndedEarly(run: string): boolean {
    return this.#evidence.runs.find(({ id }) => id === run)?.finishedAt !== null;
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
