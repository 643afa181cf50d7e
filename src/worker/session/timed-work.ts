/** What a worker does at certain instants for all workers: it fires schedules, and cancels runs that have not begun in time. */
import type { HeartbeatResult, Hint } from "../../store/contract/store.js";
import { DueSchedules, type DueSchedulesOptions, type ScheduleService } from "./due-schedules.js";
import { DueStartDeadlines, type StartDeadlineService } from "./due-start-deadlines.js";

export interface TimedWorkService extends ScheduleService {
  readonly startDeadlines: StartDeadlineService;
}

export class TimedWork {
  readonly #service: TimedWorkService;
  readonly #schedules: DueSchedules;
  readonly #startDeadlines: DueStartDeadlines;

  constructor(options: DueSchedulesOptions & { readonly service: TimedWorkService }) {
    this.#service = options.service;
    this.#schedules = new DueSchedules(options);
    this.#startDeadlines = new DueStartDeadlines({ ...options, service: options.service.startDeadlines });
  }

  async start(): Promise<void> {
    await Promise.all([this.#schedules.start(), this.#startDeadlines.start()]);
  }

  /** Resolves when the looks that are in progress have ended. */
  async stop(): Promise<void> {
    await Promise.all([this.#schedules.stop(), this.#startDeadlines.stop()]);
  }

  onHint(hint: Hint): void {
    if ((hint.kind === "schedules" && !hint.areFired) || hint.kind === "anything") this.#schedules.onHint();
    if (hint.kind === "startDeadline") this.#startDeadlines.onHint(hint.inMs);
  }

  onHeartbeat(result: HeartbeatResult): void {
    this.#schedules.onHeartbeat(result);
    this.#startDeadlines.onHeartbeat(result);
  }

  /** For tests, which decide when a worker looks. Returns how many schedules have changed before they could be fired. */
  async doDueWork(): Promise<{ readonly lost: number }> {
    await this.#service.startDeadlines.cancelDue();
    return this.#service.fireDue();
  }

  /** For tests: when the worker must look next; null: no instant is known. */
  async nextAt(): Promise<number | null> {
    const instants = await Promise.all([this.#service.nextAt(), this.#service.startDeadlines.nextAt()]);
    const known = instants.flatMap((at) => at ?? []);
    return known.length === 0 ? null : Math.min(...known);
  }
}
