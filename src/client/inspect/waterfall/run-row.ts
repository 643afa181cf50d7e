/** Collects what the run as a whole spent its time on: queue, pauses, waits of its handler, and dead workers. */
import { dataOf, type StoredEvent } from "../../../core/run/event.js";
import { type MutableSpan, newSpan, splitAtDue } from "./rows.js";

/** The fields of a run's row that a waterfall needs. */
export interface RunFacts {
  readonly id: string;
  readonly workflow: string;
  readonly status: string;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

export class RunSpans {
  readonly spans: MutableSpan[] = [];
  readonly #startAt: number;
  readonly #isFromStart: boolean;
  #pause: MutableSpan | null = null;
  #reattempt: MutableSpan | null = null;
  #previousAt: number;

  /** @param dueAt the start time of a run that has not started */
  constructor(run: RunFacts, window: { isFromStart: boolean; startAt: number; until: number; dueAt: number | null }) {
    this.#isFromStart = window.isFromStart;
    this.#startAt = this.#previousAt = window.isFromStart ? run.createdAt : window.startAt;
    if (window.isFromStart) this.#addQueue(run, window.until, window.dueAt);
  }

  get isPaused(): boolean {
    return this.#pause !== null;
  }

  #addQueue({ createdAt, startedAt, finishedAt }: RunFacts, until: number, dueAt: number | null): void {
    const isStarted = startedAt !== null && startedAt <= until;
    const from = createdAt;
    if (isStarted) {
      if (startedAt > createdAt) this.spans.push(newSpan({ kind: "queue", state: "completed", from, to: startedAt }));
      return;
    }
    // A run that ended without having started was canceled.
    const to = finishedAt !== null && finishedAt <= until ? finishedAt : null;
    const state = to === null ? "waiting" : "canceled";
    // A start time in the future is no time in the queue.
    if (dueAt === null || dueAt <= createdAt) this.spans.push(newSpan({ kind: "queue", state, from, to }));
    else
      this.spans.push(
        ...splitAtDue(newSpan({ kind: "wait", waitsFor: "start", state, from, to, dueAt }), dueAt, until),
      );
  }

  addEvent(event: StoredEvent): void {
    const { at } = event;
    switch (event.type) {
      case "run.paused":
        this.#endPause(at, false);
        this.#pause = newSpan({ kind: "pause", state: "paused", from: at, reason: dataOf(event, "run.paused").reason });
        this.spans.push(this.#pause);
        break;
      case "run.resumed":
        this.#endPause(at);
        break;
      case "run.reattempted":
        this.#reattempt = newSpan({
          ...{ kind: "wait", waitsFor: "reattempt", state: "waiting", from: at },
          dueAt: at + dataOf(event, "run.reattempted").waitMs,
        });
        this.spans.push(this.#reattempt);
        break;
      case "run.woken":
        this.#endReattempt(at);
        break;
      case "run.recovered":
        // The log has nothing of the dead worker after the event before this one.
        this.spans.push(
          newSpan({ kind: "lost", state: "failed", outcome: "abandoned", from: this.#previousAt, to: at }),
        );
    }
    this.#previousAt = at;
  }

  endAll(at: number): void {
    this.#endPause(at, false);
    this.#endReattempt(at);
  }

  #endPause(at: number, mayHaveBegunEarlier = true): void {
    if (this.#pause !== null) Object.assign(this.#pause, { to: at, state: "completed" });
    else if (mayHaveBegunEarlier && !this.#isFromStart && this.spans.every(({ kind }) => kind !== "pause"))
      this.#addCutPause(at);
    this.#pause = null;
  }

  /** The first event about a pause in the window ends one, so the run was paused before. */
  #addCutPause(at: number): void {
    this.spans.push(newSpan({ kind: "pause", state: "completed", from: this.#startAt, to: at, isCut: true }));
  }

  #endReattempt(at: number): void {
    const wait = this.#reattempt;
    if (wait === null) return;
    this.#reattempt = null;
    Object.assign(wait, { to: at, state: "completed" });
    this.spans.splice(this.spans.indexOf(wait), 1, ...splitAtDue(wait, wait.dueAt, at));
  }
}
