/**
 * What a worker does at certain instants for all workers: it fires schedules, cancels runs that have not begun in time, and offers
 * slots of limits to runs that were parked while their steps waited.
 */
import type { HeartbeatResult, Hint } from "../../store/contract/store.js";
import { DueInstants } from "./due-instants.js";
import { DueSchedules, type DueSchedulesOptions, type ScheduleService } from "./due-schedules.js";

/** What a worker needs of the runs that must begin by an instant. */
export interface StartDeadlineService {
  /** Cancels the runs that have not begun in time. Returns how long until the next deadline; null: there is none. */
  cancelDue(): Promise<number | null>;
  /** When the earliest deadline comes, by the clock of the store; null: there is none. */
  nextAt(): Promise<number | null>;
}

export interface TimedWorkService extends ScheduleService {
  readonly startDeadlines: StartDeadlineService;
}

export class TimedWork {
  readonly #options: DueSchedulesOptions & { readonly service: TimedWorkService };
  readonly #schedules: DueSchedules;
  readonly #startDeadlines: DueInstants;
  readonly #offers: DueInstants;

  constructor(options: DueSchedulesOptions & { readonly service: TimedWorkService }) {
    this.#options = options;
    const { service } = options;
    this.#schedules = new DueSchedules(options);
    this.#startDeadlines = new DueInstants({
      ...options,
      doDue: () => service.startDeadlines.cancelDue(),
      problem: "Runs that have not begun in time could not be canceled; they are looked at again soon.",
      // After a downtime the worker does not begin runs that came too late.
      looksAtStart: true,
    });
    this.#offers = new DueInstants({
      ...options,
      doDue: () => this.#offerSlots(),
      problem: "Slots of limits could not be offered to the runs that wait for them; that is tried again soon.",
      looksAtStart: false,
    });
  }

  async start(): Promise<void> {
    await Promise.all([this.#schedules.start(), this.#startDeadlines.start(), this.#offers.start()]);
  }

  /** Resolves when the looks that are in progress have ended. */
  async stop(): Promise<void> {
    await Promise.all([this.#schedules.stop(), this.#startDeadlines.stop(), this.#offers.stop()]);
  }

  onHint(hint: Hint): void {
    if ((hint.kind === "schedules" && !hint.areFired) || hint.kind === "anything") this.#schedules.onHint();
    if (hint.kind === "startDeadline") this.#startDeadlines.expect(hint.inMs);
  }

  onHeartbeat(result: HeartbeatResult): void {
    this.#schedules.onHeartbeat(result);
    this.#startDeadlines.expect(result.nextStartDeadlineInMs);
    this.#offers.expect(result.nextOfferInMs);
  }

  /** Called when slots may have to be offered within this time. */
  onOfferDue(inMs: number): void {
    this.#offers.expect(inMs);
  }

  /** For tests, which decide when a worker looks. Returns how many schedules have changed before they could be fired. */
  async doDueWork(): Promise<{ readonly lost: number }> {
    await this.#options.service.startDeadlines.cancelDue();
    return this.#options.service.fireDue();
  }

  /** For tests: does what is due for runs that wait for slots. Returns when that is due next; null: never. */
  async offerSlots(): Promise<number | null> {
    return (await this.#options.store.limits.offerSlots()).nextAt;
  }

  /** For tests: when the worker must look next; null: no instant is known. */
  async nextAt(): Promise<number | null> {
    const { service } = this.#options;
    const instants = await Promise.all([service.nextAt(), service.startDeadlines.nextAt()]);
    const known = instants.flatMap((at) => at ?? []);
    return known.length === 0 ? null : Math.min(...known);
  }

  async #offerSlots(): Promise<number | null> {
    const { at, nextAt } = await this.#options.store.limits.offerSlots();
    return nextAt === null ? null : nextAt - at;
  }
}
