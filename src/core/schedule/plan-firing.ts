/**
 * Decides what a schedule does now: which occurrences begin, wait or are skipped, and when to look again. It only computes;
 * the caller commits the result if the schedule has not changed meanwhile.
 */
import { countInstants, jitterOf, lastInstant, nextInstant } from "./instants.js";
import { occurrenceId, skippedRowId } from "./occurrence-id.js";
import type {
  Occurrence,
  OccurrenceDetail,
  Outcome,
  ScheduleData,
  ScheduleState,
  ScheduleStatus,
} from "./schedule-data.js";

/** The most occurrences that wait for a run to end, and the most that are caught up. */
export const bufferLimit = 100;
/** `missed` and the counts of skipped occurrences stop here, because instants of a cron expression are counted one by one. */
const countLimit = 100_000;
/** With catch-up mode "none", an occurrence may be this late unless `within` says otherwise. */
const noCatchUpToleranceMs = 60_000;

export interface FiringSituation {
  readonly name: string;
  readonly incarnation: string;
  readonly data: ScheduleData;
  readonly status: ScheduleStatus;
  readonly state: ScheduleState;
  readonly nextFor: number | null;
  readonly now: number;
  /** Occurrences whose runs are open. */
  readonly open: readonly Occurrence[];
  /** Occurrences whose runs have ended since the last look; `failed` is null for a run that was canceled or deleted. */
  readonly ended: readonly { readonly occurrence: Occurrence; readonly failed: boolean | null }[];
  /** Occurrences that wait, the oldest first, without those of a backfill. */
  readonly waiting: readonly Occurrence[];
  readonly backfill: { readonly isOpen: boolean; readonly next: Occurrence | null };
  /** Instants from `nextFor` on that a backfill has taken already: they run, or have run, as part of it. */
  readonly backfilled: ReadonlySet<number>;
}

export interface Firing {
  /** When this was decided. */
  readonly at: number;
  readonly status: ScheduleStatus;
  readonly state: ScheduleState;
  readonly nextFor: number | null;
  readonly nextAt: number | null;
  /** The rows of the ledger that are written. Those whose `outcome` is "ran" and whose `pending` is open begin now. */
  readonly occurrences: readonly Occurrence[];
  /** The occurrences that begin a run now; they are among `occurrences`. */
  readonly begins: readonly Occurrence[];
  /** Runs whose cancellation is requested, because a newer occurrence takes their place. */
  readonly cancelRunIds: readonly string[];
}

export function planFiring(situation: FiringSituation): Firing {
  return new FiringPlan(situation).plan();
}

class FiringPlan {
  readonly #situation: FiringSituation;
  /** The rows to write, by id: a later decision about an occurrence replaces an earlier one. */
  readonly #rows = new Map<string, Occurrence>();
  #begins: Occurrence[] = [];
  #cancelRunIds: readonly string[] = [];
  #status: ScheduleStatus;
  #state: ScheduleState;
  #nextFor: number | null;
  #waiting: Occurrence[];
  #openCount: number;

  constructor(situation: FiringSituation) {
    this.#situation = situation;
    this.#status = situation.status;
    this.#state = situation.state;
    this.#nextFor = situation.nextFor;
    // What a person has requested is decided below, and waits only from then on.
    this.#waiting = situation.waiting.filter(({ outcome }) => outcome !== "requested");
    this.#openCount = situation.open.length;
  }

  plan(): Firing {
    this.#noteEndedRuns();
    this.#resumeAfterPause();
    if (this.#status !== "retired") {
      this.#beginWaiting();
      this.#beginBackfill();
    }
    if (this.#status === "active") this.#fireDueInstants();
    this.#endIfOver();
    return {
      at: this.#situation.now,
      status: this.#status,
      state: this.#state,
      nextFor: this.#nextFor,
      nextAt: this.#nextAt(),
      occurrences: [...this.#rows.values()],
      begins: this.#begins,
      cancelRunIds: this.#cancelRunIds,
    };
  }

  #noteEndedRuns(): void {
    const { ended, data, now } = this.#situation;
    for (const { occurrence, failed } of ended) {
      this.#write({ ...occurrence, pending: null });
      if (failed === null || occurrence.detail.backfill || occurrence.detail.manual) continue;
      this.#state = { ...this.#state, failures: failed ? this.#state.failures + 1 : 0 };
    }
    const { pauseOnFailure } = data;
    if (pauseOnFailure === null || this.#state.failures < pauseOnFailure || this.#status !== "active") return;
    const runs = this.#state.failures === 1 ? "A run has" : `${this.#state.failures} runs in a row have`;
    this.#status = "paused";
    const pause = { at: now, until: null, by: null, reason: `${runs} failed.` };
    this.#state = { ...this.#state, pause };
  }

  #resumeAfterPause(): void {
    const { pause } = this.#state;
    const { now } = this.#situation;
    if (this.#status !== "paused" || pause === undefined || pause.until === null || pause.until > now) return;
    const { pause: _, ...rest } = this.#state;
    this.#status = "active";
    this.#state = { ...rest, failures: 0, idleUntil: { at: pause.until, outcome: "paused" } };
  }

  /** What waits begins in its order, one run at a time. What a person has asked for also begins while it is paused. */
  #beginWaiting(): void {
    for (const occurrence of this.#situation.waiting) {
      const { manual, force } = occurrence.detail;
      if (this.#status === "paused" && !manual) continue;
      if (this.#openCount === 0 || force || this.#situation.data.overlap === "allowAll") this.#begin(occurrence);
      else if (occurrence.outcome === "requested") this.#decideRequested(occurrence);
    }
  }

  /** A run is open, so what a person has requested meets the overlap policy. */
  #decideRequested(requested: Occurrence): void {
    const outcome = this.#outcomeWhileOpen();
    // The open run may have been one that this look was about to begin.
    if (outcome === "buffered" && this.#openCount === 0) return this.#begin(requested);
    const pending = outcome === "buffered" ? "waiting" : null;
    const decided: Occurrence = { ...requested, outcome, pending, at: this.#situation.now };
    if (pending !== null) this.#waiting.push(decided);
    this.#write(decided);
  }

  /** The occurrences of a backfill run one after another, beside the others. */
  #beginBackfill(): void {
    const { isOpen, next } = this.#situation.backfill;
    if (next === null && !isOpen && this.#state.hasBackfill) {
      const { hasBackfill: _, ...rest } = this.#state;
      this.#state = rest;
    }
    if (next !== null && !isOpen) this.#begin(next);
  }

  /** Goes through the instants that have come since the last firing, and decides which of them run. */
  #fireDueInstants(): void {
    const { data, now } = this.#situation;
    const { timing } = data;
    if (this.#nextFor === null) return;
    const from = this.#nextFor;
    let last = lastInstant(timing, from - 1, now);
    if (last !== null && this.#dueAtOf(last) > now) last = lastInstant(timing, from - 1, last - 1);
    if (last === null) return;
    const { mode } = data.catchUp;
    if (mode === "all") this.#fireAll(from, last);
    else this.#fireLatest(from, last);
    this.#nextFor = nextInstant(timing, last);
    const { idleUntil: _, backfilledUntil, ...rest } = this.#state;
    const isBackfilled = backfilledUntil !== undefined && this.#nextFor !== null && this.#nextFor <= backfilledUntil;
    this.#state = isBackfilled ? { ...rest, backfilledUntil } : rest;
  }

  #fireLatest(from: number, last: number): void {
    const { timing, catchUp } = this.#situation.data;
    const isTooLate = this.#latenessOf(last) > (catchUp.withinMs ?? this.#defaultWithinMs());
    if (isTooLate) return this.#skipLate(from, last);
    const missed = last === from ? 0 : countInstants(timing, from - 1, last - 1, countLimit);
    if (missed > 0) this.#skipLate(from, lastInstant(timing, from - 1, last - 1) as number);
    this.#fire(last, missed, false);
  }

  #defaultWithinMs(): number {
    return this.#situation.data.catchUp.mode === "none" ? noCatchUpToleranceMs : Number.POSITIVE_INFINITY;
  }

  /** Runs the latest hundred of the instants that are not too late, the oldest first. */
  #fireAll(from: number, last: number): void {
    const { data, now } = this.#situation;
    const { timing, catchUp } = data;
    const earliest = catchUp.withinMs === null ? from : Math.max(from, now - catchUp.withinMs - data.jitterMs);
    const instants: number[] = [];
    for (let at: number | null = last; at !== null && at >= earliest && instants.length < bufferLimit; ) {
      if (catchUp.withinMs === null || this.#latenessOf(at) <= catchUp.withinMs) instants.push(at);
      at = lastInstant(timing, from - 1, at - 1);
    }
    instants.reverse();
    const [oldest] = instants;
    const lastSkipped = oldest === undefined ? last : lastInstant(timing, from - 1, oldest - 1);
    if (lastSkipped !== null) this.#skipLate(from, lastSkipped);
    for (const instant of instants) this.#fire(instant, 0, instants.length > 1);
  }

  /** @param mustQueue whether it is one of several that are caught up: then it waits for its turn instead of being skipped */
  #fire(instant: number, missed: number, mustQueue: boolean): void {
    const { name, incarnation, data, now } = this.#situation;
    if (this.#hasReachedMaxRuns || this.#situation.backfilled.has(instant)) return;
    const detail: OccurrenceDetail = {
      ...(missed === 0 ? {} : { missed }),
      latenessMs: Math.max(0, now - this.#dueAtOf(instant)),
    };
    const occurrence: Occurrence = {
      id: occurrenceId(name, incarnation, instant),
      scheduledFor: instant,
      scheduledUntil: instant,
      count: 1,
      outcome: "buffered",
      pending: "waiting",
      at: now,
      detail,
    };
    // What waits has been looked at before, so it waits for an open run.
    if (this.#openCount === 0 || data.overlap === "allowAll") return this.#accept(() => this.#begin(occurrence));
    const outcome = mustQueue ? this.#queueOutcome() : this.#outcomeWhileOpen();
    if (outcome !== "buffered") return this.#skip(outcome, instant, instant, 1);
    this.#accept(() => {
      // The open run may have been one that this look was about to begin.
      if (this.#openCount === 0) return this.#begin(occurrence);
      this.#waiting.push(occurrence);
      this.#write(occurrence);
    });
  }

  #accept(decide: () => void): void {
    this.#state = { ...this.#state, accepted: this.#state.accepted + 1 };
    decide();
    const { skipped: _, ...rest } = this.#state;
    this.#state = rest;
  }

  get #hasReachedMaxRuns(): boolean {
    const { maxRuns } = this.#situation.data;
    return maxRuns !== null && this.#state.accepted >= maxRuns;
  }

  #queueOutcome(): Outcome {
    return this.#waiting.length < bufferLimit ? "buffered" : "skipped_buffer_full";
  }

  /** What the overlap policy says about one more occurrence while a run is open. */
  #outcomeWhileOpen(): Outcome {
    switch (this.#situation.data.overlap) {
      case "bufferOne":
        return this.#waiting.length === 0 ? "buffered" : "skipped_buffer_full";
      case "bufferAll":
        return this.#queueOutcome();
      case "cancelOther":
        this.#makeRoom();
        return "buffered";
      default:
        return "skipped_overlap";
    }
  }

  /**
   * The newest occurrence takes the place of the open runs, of those that this look was about to begin, and of the
   * occurrences that wait.
   */
  #makeRoom(): void {
    const { open } = this.#situation;
    this.#cancelRunIds = open.map(({ id }) => id);
    const mustBegin = ({ detail }: Occurrence) => detail.backfill === true || detail.force === true;
    const replaceable = this.#begins.filter((occurrence) => !mustBegin(occurrence));
    for (const occurrence of [...replaceable, ...this.#waiting]) this.#replace(occurrence);
    this.#begins = this.#begins.filter(mustBegin);
    this.#openCount -= replaceable.length;
    this.#waiting = [];
  }

  /** Its run never begins, so it does not count for `maxRuns`. */
  #replace(occurrence: Occurrence): void {
    if (!occurrence.detail.manual) this.#state = { ...this.#state, accepted: this.#state.accepted - 1 };
    this.#write({ ...occurrence, outcome: "skipped_overlap", pending: null, at: this.#situation.now });
  }

  #begin(occurrence: Occurrence): void {
    const { now } = this.#situation;
    const isBackfill = occurrence.detail.backfill === true;
    const begun: Occurrence = {
      ...occurrence,
      outcome: "ran",
      pending: isBackfill ? "backfill_open" : "open",
      at: now,
    };
    this.#waiting = this.#waiting.filter(({ id }) => id !== occurrence.id);
    if (!isBackfill) this.#openCount += 1;
    this.#begins.push(begun);
    this.#write(begun);
  }

  /** Instants up to the end of a pause are recorded as such, later ones as late. */
  #skipLate(from: number, until: number): void {
    const { timing } = this.#situation.data;
    const { idleUntil } = this.#state;
    const idleEnd = idleUntil === undefined ? null : lastInstant(timing, from - 1, Math.min(until, idleUntil.at));
    if (idleUntil !== undefined && idleEnd !== null) {
      this.#skip(idleUntil.outcome, from, idleEnd, countInstants(timing, from - 1, idleEnd, countLimit));
      const next = nextInstant(timing, idleEnd);
      if (next === null || next > until) return;
      return this.#skip("skipped_late", next, until, countInstants(timing, next - 1, until, countLimit));
    }
    this.#skip("skipped_late", from, until, countInstants(timing, from - 1, until, countLimit));
  }

  /** Consecutive occurrences that are skipped for the same reason share a row, or a blocked schedule would fill the ledger. */
  #skip(outcome: Outcome, from: number, until: number, count: number): void {
    const { name, incarnation, now } = this.#situation;
    const { skipped } = this.#state;
    const row =
      skipped?.outcome === outcome
        ? { ...skipped, until, count: skipped.count + count }
        : { id: skippedRowId(name, incarnation, from, outcome), outcome, from, until, count };
    this.#state = { ...this.#state, skipped: row };
    this.#write({
      id: row.id,
      scheduledFor: row.from,
      scheduledUntil: row.until,
      count: row.count,
      outcome,
      pending: null,
      at: now,
      detail: {},
    });
  }

  #endIfOver(): void {
    if (this.#status !== "active") return;
    if (this.#hasReachedMaxRuns) this.#nextFor = null;
    if (this.#nextFor === null) this.#status = "ended";
  }

  #nextAt(): number | null {
    if (this.#status === "paused") return this.#state.pause?.until ?? null;
    if (this.#status !== "active" || this.#nextFor === null) return null;
    return this.#dueAtOf(this.#nextFor);
  }

  #dueAtOf(instant: number): number {
    return instant + jitterOf(this.#situation.name, instant, this.#situation.data.jitterMs);
  }

  #latenessOf(instant: number): number {
    return this.#situation.now - this.#dueAtOf(instant);
  }

  #write(occurrence: Occurrence): void {
    this.#rows.set(occurrence.id, occurrence);
    const { id, outcome, scheduledUntil: scheduledFor, at, pending, detail } = occurrence;
    // The end of a run is no news about its occurrence, and a backfill is about older instants.
    if ((pending === null && outcome === "ran") || detail.backfill) return;
    if (scheduledFor >= (this.#state.last?.scheduledFor ?? Number.NEGATIVE_INFINITY))
      this.#state = { ...this.#state, last: { id, outcome, scheduledFor, at } };
  }
}
