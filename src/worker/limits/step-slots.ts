/**
 * The slots of limits that steps of a session hold or wait for. One call to the store is under way at a time; what is asked for
 * and given back meanwhile is gathered for the next, so many steps cost few transactions.
 */
import { InvalidInputError } from "../../core/errors/errors.js";
import { laneIdOf, slotNodeOf } from "../../core/limits/lane.js";
import type { Logger } from "../../define/context.js";
import type { LimitDefinition, StepLimit } from "../../define/limit.js";
import { maxTimerMs, type Runtime, type Timer } from "../../runtime/runtime.js";
import type { FreedSlots, StepSlot, StepSlotRequest } from "../../store/contract/limits.js";
import type { Fence, RunRecord, Store } from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";
import type { SlotGate } from "../step/slot-queue.js";
import { keyOf, settingsOf } from "./limited-workflows.js";

const errorRetryDelayMs = 200;
/** A hint that a step got a slot may be lost. */
const pollWithHintsMs = 1_000;
const pollWithoutHintsMs = 20;

export interface StepSlotsOptions {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly fence: Fence;
  /** How long after its connection has failed a server may still execute a call. */
  readonly lateCallMs: number;
  /** Called with lanes that have free slots, on which runs wait. */
  readonly onFreed: (freed: readonly FreedSlots[]) => void;
  /** Called when a lane must be looked at within this time, because runs wait in it that no worker executes. */
  readonly onLookDue: (inMs: number) => void;
}

interface Entry {
  readonly request: StepSlotRequest;
  readonly onGranted: () => void;
  isGranted: boolean;
  /** Called with true when the wait belongs to the run, with false when the step has got its slot or does not wait any more. */
  onLeft: ((isLeft: boolean) => void) | null;
  /** Whether the wait belongs to the run. */
  isLeft: boolean;
}

export class StepSlots {
  readonly #options: StepSlotsOptions;
  /** The steps that hold a slot or wait for one, by node. */
  readonly #entries = new Map<string, Entry>();
  #registered = new Map<string, LimitDefinition>();
  #unregistered: LimitDefinition[] = [];
  #asked: StepSlotRequest[] = [];
  #released: StepSlot[] = [];
  /**
   * Requests of calls that have failed. The server may have executed such a call, or may do so after the step has ended; its
   * slot would then belong to a step that nothing executes.
   */
  #unsure: StepSlotRequest[] = [];
  #unsureTimer: Timer | null = null;
  #corrections = new Map<string, number>();
  #mustLook = false;
  #count = 0;
  #pending: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isClosed = false;
  /** When the rate of a lane lets the next step begin, in the store's time; null if no rate delays a step. */
  #nextAt: number | null = null;

  constructor(options: StepSlotsOptions) {
    this.#options = options;
  }

  /** @param key the key of the step, for people who look at the slots */
  gateOf({ limit, units }: StepLimit, run: RunRecord, key: string): SlotGate {
    this.#register(limit);
    const lane = laneIdOf(limit.name, keyOf(limit.key, `The key of limit "${limit.name}"`, run, this.#options.log));
    let node = "";
    return {
      leave: () => this.#leave(node),
      acquire: (onAcquired) => {
        this.#count += 1;
        const { workerId, epoch } = this.#options.fence;
        node = slotNodeOf(workerId, epoch, this.#count, key);
        const request = { runId: run.id, node, lane, priority: run.priority, units };
        const release = () => this.#release(entry);
        const onGranted = () => onAcquired(release);
        const entry: Entry = { request, onGranted, isGranted: false, onLeft: null, isLeft: false };
        this.#entries.set(node, entry);
        this.#asked.push(request);
        this.#sendSoon();
        return release;
      },
    };
  }

  /** Moves the pace of the lane on by units that a step used beyond those it was admitted with, or back. */
  correctUnits({ limit }: StepLimit, run: RunRecord, furtherUnits: number): void {
    if (furtherUnits === 0 || limit.rate === null) return;
    const lane = laneIdOf(limit.name, keyOf(limit.key, `The key of limit "${limit.name}"`, run, this.#options.log));
    this.#corrections.set(lane, (this.#corrections.get(lane) ?? 0) + furtherUnits);
    this.#sendSoon();
  }

  /** Called when slots may have become free, or another worker may have given one to a step of this session. */
  onHint(): void {
    if (!this.#hasWaiting) return;
    this.#mustLook = true;
    this.#sendSoon();
  }

  get nextAt(): number | null {
    return this.#hasWaiting ? this.#nextAt : null;
  }

  get isSettled(): boolean {
    return this.#pending === null && !this.#hasWork;
  }

  /** Resolves when the store knows of everything that was asked for and given back so far. */
  async settled(): Promise<void> {
    while (this.#pending !== null) await this.#pending;
  }

  /** From now on nothing is sent: the session is over, and its slots are free when its worker is deregistered or reaped. */
  close(): void {
    this.#isClosed = true;
    this.#stopTimer();
    this.#options.runtime.clearTimeout(this.#unsureTimer);
  }

  #register(limit: LimitDefinition): void {
    const known = this.#registered.get(limit.name);
    if (known === limit) return;
    if (known !== undefined)
      throw new InvalidInputError(`Two different limits are called "${limit.name}"; give one of them another name.`);
    this.#registered.set(limit.name, limit);
    this.#unregistered.push(limit);
  }

  get #hasWaiting(): boolean {
    for (const { isGranted } of this.#entries.values()) if (!isGranted) return true;
    return false;
  }

  /** The row of a call that has failed may still be written, and would then be held by none: such a step waits on. */
  async #leave(node: string): Promise<boolean> {
    const entry = this.#entries.get(node);
    if (entry === undefined || entry.isGranted || this.#unsure.includes(entry.request)) return false;
    return new Promise((resolve) => {
      entry.onLeft = resolve;
      this.#sendSoon();
    });
  }

  get #leaving(): readonly Entry[] {
    return [...this.#entries.values()].filter(({ onLeft }) => onLeft !== null);
  }

  #release(entry: Entry): void {
    const { request, onLeft } = entry;
    if (this.#entries.get(request.node) === entry) {
      this.#entries.delete(request.node);
      onLeft?.(false);
    } else if (!entry.isLeft) return;
    entry.isLeft = false;
    const isUnsent = this.#asked.includes(request);
    if (isUnsent) this.#asked = this.#asked.filter((other) => other !== request);
    if (!isUnsent || this.#unsure.includes(request)) this.#released.push(request);
    this.#sendSoon();
  }

  #sendSoon(): void {
    if (!this.#isClosed) this.#pending ??= inCleanContext(() => this.#send());
  }

  async #send(): Promise<void> {
    // Steps that begin in the same turn of the event loop ask together.
    await null;
    const { log } = this.#options;
    try {
      while (this.#hasWork && !this.#isClosed) await this.#sendChanges();
      this.#schedulePoll(null);
    } catch (error) {
      warnOfRetry(log, "Slots of limits could not be asked for or given back; that is tried again.", error);
      this.#mustLook = true;
      this.#startTimer(errorRetryDelayMs);
    } finally {
      this.#pending = null;
    }
    if (this.#hasWork && this.#timer === null) this.#sendSoon();
  }

  get #hasWork(): boolean {
    return (
      this.#mustLook ||
      this.#leaving.length > 0 ||
      this.#asked.length + this.#released.length + this.#corrections.size > 0
    );
  }

  async #sendChanges(): Promise<void> {
    const { store, fence, onFreed, onLookDue } = this.#options;
    while (this.#unregistered.length > 0) {
      // A copy: another limit may be added to the list while these are being stored.
      const limits = [...this.#unregistered];
      await store.limits.register(limits.map(settingsOf));
      this.#unregistered = this.#unregistered.slice(limits.length);
    }
    for (const [lane, units] of this.#corrections) {
      this.#corrections.delete(lane);
      await store.limits.addUnits(lane, units);
    }
    const [asked, released, leaving] = [this.#asked, this.#released, this.#leaving];
    const waitingLanes = new Set<string>();
    for (const { request, isGranted } of this.#entries.values()) if (!isGranted) waitingLanes.add(request.lane);
    this.#asked = [];
    this.#released = [];
    this.#mustLook = false;
    try {
      if (asked.length + released.length + waitingLanes.size === 0) return;
      const result = await store.limits.changeStepSlots({
        fence,
        asked,
        released,
        left: leaving.map(({ request }) => request),
        lanes: [...waitingLanes],
      });
      if (result.kind === "fenced") return this.close();
      onFreed(result.lanesToWake);
      this.#nextAt = result.nextAt;
      this.#grant(result.held);
      this.#onLeft(leaving);
      if (result.looksAt !== null) onLookDue(result.looksAt - result.at);
      this.#schedulePoll(result.nextAt === null ? null : Math.max(0, result.nextAt - result.at));
    } catch (error) {
      // Doing it twice changes nothing.
      this.#asked = [...asked.filter(({ node }) => this.#entries.has(node)), ...this.#asked];
      this.#released = [...released, ...this.#released];
      this.#unsure.push(...asked);
      // Also those that were to leave while the call was under way.
      for (const entry of this.#leaving) if (asked.includes(entry.request)) this.#stay(entry);
      this.#releaseUnsureLater();
      throw error;
    }
  }

  #stay(entry: Entry): void {
    entry.onLeft?.(false);
    entry.onLeft = null;
  }

  /** Those that have not got a slot in the same call belong to their runs now. */
  #onLeft(leaving: readonly Entry[]): void {
    for (const entry of leaving) {
      const { request, onLeft } = entry;
      if (onLeft === null || this.#entries.get(request.node) !== entry) continue;
      this.#entries.delete(request.node);
      entry.isLeft = true;
      onLeft(true);
    }
  }

  /** The names of slots are never used again, so what is released belongs to none that is executed. */
  #releaseUnsureLater(): void {
    const { runtime, lateCallMs } = this.#options;
    runtime.clearTimeout(this.#unsureTimer);
    if (this.#isClosed) return;
    this.#unsureTimer = runtime
      .setTimeout(() => {
        this.#released.push(...this.#unsure.filter(({ node }) => !this.#entries.has(node)));
        this.#unsure = [];
        this.#sendSoon();
      }, lateCallMs)
      .unref();
  }

  #grant(held: readonly StepSlot[]): void {
    for (const { node } of held) {
      const entry = this.#entries.get(node);
      if (entry === undefined || entry.isGranted) continue;
      entry.isGranted = true;
      this.#stay(entry);
      entry.onGranted();
    }
  }

  /** @param rateDelayMs when the rate of a lane lets the next step begin; null if no rate delays a step */
  #schedulePoll(rateDelayMs: number | null): void {
    const { store } = this.#options;
    if (rateDelayMs === null && this.#timer !== null) return;
    if (this.#isClosed || !this.#hasWaiting) return this.#stopTimer();
    const pollMs = store.hasCrossProcessHints ? pollWithHintsMs : pollWithoutHintsMs;
    this.#startTimer(Math.min(rateDelayMs ?? pollMs, pollMs, maxTimerMs));
  }

  #stopTimer(): void {
    this.#options.runtime.clearTimeout(this.#timer);
    this.#timer = null;
  }

  #startTimer(delayMs: number): void {
    this.#stopTimer();
    this.#timer = this.#options.runtime
      .setTimeout(() => {
        this.#timer = null;
        this.#mustLook = true;
        this.#sendSoon();
      }, delayMs)
      .unref();
  }
}
