/** The schedules of one worker: those that it declares, and those that were put by the API, which every worker fires. */
import type { ScheduleInterest, Store } from "../../store/contract/store.js";
import type { OverdueStarts } from "../start/start-deadlines.js";
import type { FiringProgress, ScheduleDefinitions, ScheduleFiring } from "./firing.js";
import type { ScheduleSet } from "./schedule-set.js";

export interface WorkerSchedulesOptions {
  readonly store: Store;
  readonly firing: ScheduleFiring;
  readonly definitions: ScheduleDefinitions;
  readonly startDeadlines: OverdueStarts;
  /** The application and its set; null if the worker declares no schedules. */
  readonly declared: { readonly app: string; readonly set: ScheduleSet } | null;
}

export class WorkerSchedules {
  readonly interest: ScheduleInterest;
  readonly startDeadlines: OverdueStarts;
  readonly #options: WorkerSchedulesOptions;

  constructor(options: WorkerSchedulesOptions) {
    this.#options = options;
    this.startDeadlines = options.startDeadlines;
    const { declared } = options;
    this.interest = declared === null ? { app: null, setKey: "" } : { app: declared.app, setKey: declared.set.key };
  }

  /** Makes the set that the worker declares the one in force, unless that of another live worker is newer. */
  async claimSet(): Promise<void> {
    await this.#options.declared?.set.claim();
  }

  /** Fires all schedules of this worker that are due. */
  async fireDue(): Promise<FiringProgress> {
    const { firing, definitions } = this.#options;
    const total = { changed: 0, lost: 0 };
    for (;;) {
      const progress = await firing.fireDue(this.#setKeys, definitions);
      total.changed += progress?.changed ?? 0;
      total.lost += progress?.lost ?? 0;
      if (progress === null || progress.changed === 0) return total;
    }
  }

  /** When the next schedule of this worker must be looked at, by the clock of the store; null: none. */
  nextAt(): Promise<number | null> {
    return this.#options.store.schedules.nextAt(this.#setKeys);
  }

  get #setKeys(): readonly string[] {
    const { setKey } = this.interest;
    return setKey === "" ? [""] : ["", setKey];
  }
}
