/**
 * Counts the runs that begin and end in this process, per workflow and minute of the store's clock, and adds the counts to
 * the table of figures every few seconds. A commit costs a few comparisons, and a counter in memory when its run begins or
 * ends. What a process has counted since it last wrote is lost when the process is killed.
 */
import type { NewEvent } from "../core/run/event.js";
import type { Logger } from "../define/context.js";
import type { Runtime, Timer } from "../runtime/runtime.js";
import type { MinuteFigures, NextTaskState, Store } from "../store/contract/store.js";
import { warnOfRetry } from "./warn-of-retry.js";

const minuteMs = 60_000;
const writeAfterMs = 10_000;
/** `run.started` is among the first events of a log: before it, there may be a pause, a resume and their authors. */
const lastPossibleStart = 16;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type FigureName = Exclude<keyof MinuteFigures, "minute" | "workflow">;

export interface TalliedCommit {
  readonly events: readonly NewEvent[];
  readonly afterSeq: number;
  readonly at: number;
  readonly next: NextTaskState;
}

export class RunTally {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #runtime: Runtime;
  #figures = new Map<string, Mutable<MinuteFigures>>();
  /** The figures that were counted last; null when they are not among `#figures` any more. */
  #last: Mutable<MinuteFigures> | null = null;
  #timer: Timer | null = null;
  #writing: Promise<void> | null = null;

  constructor(store: Store, log: Logger, runtime: Runtime) {
    this.#store = store;
    this.#log = log;
    this.#runtime = runtime;
  }

  /** Counts what a committed transition of a run of this workflow has begun, ended or paused. */
  record(workflow: string, { events, afterSeq, at, next }: TalliedCommit): void {
    if (afterSeq < lastPossibleStart && hasEvent(events, "run.started")) this.#add(workflow, "began", at);
    if (next.kind === "finish") this.#add(workflow, next.status, at);
    // The pause may be committed while other steps of the run still execute, before the run is parked.
    else if (hasEvent(events, "run.paused")) this.#add(workflow, "paused", at);
  }

  #add(workflow: string, name: FigureName, at: number): void {
    const minute = Math.floor(at / minuteMs);
    // Usually the last commit was of the same workflow in the same minute, and then no key is made.
    if (this.#last?.minute !== minute || this.#last.workflow !== workflow)
      this.#last = this.#figuresOf(workflow, minute);
    this.#last[name] += 1;
  }

  #figuresOf(workflow: string, minute: number): Mutable<MinuteFigures> {
    const key = `${minute} ${workflow}`;
    let figures = this.#figures.get(key);
    if (figures === undefined) {
      figures = { minute, workflow, began: 0, completed: 0, failed: 0, canceled: 0, paused: 0 };
      this.#figures.set(key, figures);
      this.#timer ??= this.#runtime.setTimeout(() => void this.#writeLater(), writeAfterMs).unref();
    }
    return figures;
  }

  async #writeLater(): Promise<void> {
    this.#timer = null;
    await this.write();
  }

  /** Writes what was counted since the last call. */
  async write(): Promise<void> {
    this.#runtime.clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
    if (this.#figures.size === 0) return;
    this.#writing = this.#writeNow().finally(() => {
      this.#writing = null;
    });
    await this.#writing;
  }

  async #writeNow(): Promise<void> {
    const figures = this.#figures;
    this.#figures = new Map();
    this.#last = null;
    try {
      await this.#store.maintenance.questions.addFigures([...figures.values()]);
    } catch (error) {
      warnOfRetry(this.#log, "The figures of the last seconds could not be written, and are missing.", error);
    }
  }
}

function hasEvent(events: readonly NewEvent[], type: string): boolean {
  for (const event of events) if (event.type === type) return true;
  return false;
}
