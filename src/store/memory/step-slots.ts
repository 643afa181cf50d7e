/** The slots of steps in the memory store, and the offers to runs that were parked while their steps waited. */
import { stepOfSlot } from "../../core/limits/lane.js";
import {
  grantSteps,
  type LaneState,
  looksAtOf,
  offeredMs,
  offersWithin,
  opensAtOf,
  roomIn,
  type WaitingStep,
} from "../../core/limits/lane-state.js";
import type { FreedSlots, StepSlotChanges, StepSlotRequest, StepSlotResult } from "../contract/limits.js";
import type { Fence, Hint } from "../contract/store.js";
import type { MemoryRows } from "./rows.js";
import type { MemorySlot } from "./slots.js";

interface StepSlotsPort {
  readonly rows: MemoryRows;
  readonly clock: () => number;
  readonly emit: (hints: readonly Hint[]) => void;
  laneStates(ids: readonly string[]): ReadonlyMap<string, LaneState>;
  setPace(lane: LaneState): void;
  /** When the lane must be looked at; null: never. */
  looksAt(lane: string): number | null;
}

type WaitingSlot = MemorySlot & WaitingStep;

export class MemoryStepSlots {
  readonly #port: StepSlotsPort;
  readonly #rows: MemoryRows;

  constructor(port: StepSlotsPort) {
    this.#port = port;
    this.#rows = port.rows;
  }

  change({ fence, asked, released, left = [], lanes: further }: StepSlotChanges): StepSlotResult {
    const [at, { slots }] = [this.#port.clock(), this.#rows];
    for (const { lane, ...key } of released) slots.release(lane, key);
    for (const request of asked) if (!slots.has(request.lane, request)) this.#enter(request, fence, at);
    const laneIds = [...new Set([...asked, ...released, ...left].map(({ lane }) => lane).concat(further))];
    const after = this.#serve(laneIds, at, fence);
    for (const { lane, runId, node } of left) {
      const slot = slots.get(lane, { runId, node });
      // A step that has got a slot just now does not leave its place.
      if (slot === undefined || !slot.isWaiting || !isOf(slot, fence)) continue;
      slots.put({ ...slot, owner: null, epoch: null });
      after.set(lane, this.#writeLook(after.get(lane) as LaneState, at));
    }
    const held = slots.all().filter((slot) => isOf(slot, fence) && slot.node !== "" && !slot.isWaiting);
    const states = [...after.values()];
    const instants = states.flatMap(({ waitingSteps, opensAt }) => (waitingSteps > 0 ? (opensAt ?? []) : []));
    const looks = states.flatMap(({ parked }) => parked?.looksAt ?? []);
    return {
      kind: "granted",
      at,
      held: held.filter(({ lane }) => laneIds.includes(lane)).map(({ runId, node, lane }) => ({ runId, node, lane })),
      nextAt: instants.length === 0 ? null : Math.min(...instants),
      looksAt: looks.length === 0 ? null : Math.min(...looks),
      lanesToWake: lanesToWake(states, at),
    };
  }

  /** Returns the lanes that have free slots on which classes are blocked. */
  look(laneIds: readonly string[], at: number): readonly FreedSlots[] {
    for (const lane of laneIds) this.#endOffers(lane, at);
    return lanesToWake([...this.#serve(laneIds, at, null).values()], at);
  }

  /** What the state of a lane has of the steps whose runs no worker executes. */
  parkedIn(lane: string): Pick<LaneState, "parked"> {
    const parked = this.#rows.slots.parked(lane);
    const looksAt = this.#port.looksAt(lane);
    if (parked.length === 0 && looksAt === null) return {};
    const offered = parked.filter(({ isWaiting }) => !isWaiting);
    const ends = offered.map(({ offeredUntil }) => offeredUntil as number);
    return {
      parked: {
        count: parked.length,
        offeredUnits: offered.reduce((sum, { units }) => sum + units, 0),
        offerEndsAt: ends.length === 0 ? null : Math.min(...ends),
        looksAt,
      },
    };
  }

  /** A step of a run that was parked goes on waiting with the age that it had. */
  #enter({ priority, ...request }: StepSlotRequest, { workerId: owner, epoch }: Fence, at: number): void {
    const { slots } = this.#rows;
    const parked = slots
      .parked(request.lane)
      .find(({ runId, node }) => runId === request.runId && stepOfSlot(node) === stepOfSlot(request.node));
    if (parked !== undefined) slots.release(parked.lane, parked);
    const place = parked === undefined ? { rank: -priority, at } : { rank: parked.rank, at: parked.at };
    slots.put({ ...request, ...place, isWaiting: true, owner, epoch });
  }

  #serve(laneIds: readonly string[], at: number, fence: Fence | null): Map<string, LaneState> {
    const { slots } = this.#rows;
    const after = new Map<string, LaneState>();
    const routes = new Set<string>();
    let concernsOthers = false;
    for (const lane of this.#port.laneStates(laneIds).values())
      for (const slot of slots.waiting(lane.id).slice(0, offersWithin(lane)))
        if (slot.owner === null && this.#isGone(slot)) slots.release(lane.id, slot);
    for (const lane of this.#port.laneStates(laneIds).values()) {
      const waiting = slots.waiting(lane.id).map(
        (slot): WaitingSlot => ({
          ...slot,
          waiter: slot.owner !== null ? "worker" : this.#isGone(slot) ? "passed" : "offerable",
        }),
      );
      const grant = grantSteps(lane, waiting, at);
      for (const { waiter, ...slot } of grant.granted) {
        slots.put({ ...slot, isWaiting: false, at });
        concernsOthers ||= fence === null || !isOf(slot, fence);
      }
      for (const { waiter, ...slot } of grant.offered) {
        slots.put({ ...slot, isWaiting: false, offeredUntil: at + offeredMs });
        const route = this.#makeDue(slot.runId, at);
        if (route !== null) routes.add(route);
      }
      const isWaitedFor = lane.unreadTurn !== null || grant.lane.waitingSteps > 0;
      after.set(lane.id, this.#writeLook({ ...grant.lane, opensAt: opensAtOf(grant.lane, isWaitedFor, at) }, at));
    }
    if (concernsOthers) this.#port.emit([{ kind: "slots" }]);
    if (routes.size > 0) this.#port.emit([{ kind: "ready", workflows: [...routes] }]);
    return after;
  }

  #writeLook(lane: LaneState, at: number): LaneState {
    const { parked } = this.parkedIn(lane.id);
    const looked = parked === undefined ? lane : { ...lane, parked };
    const next =
      looked.parked === undefined
        ? looked
        : { ...looked, parked: { ...looked.parked, looksAt: looksAtOf(looked, at) } };
    this.#port.setPace(next);
    return next;
  }

  /**
   * A run that is parked although a slot was offered to it has been executed meanwhile, and its code has not made the call. In
   * case that it was offered the slot in the moment before it was parked, it is made due all the same.
   */
  #endOffers(lane: string, at: number): void {
    const { slots, tasks } = this.#rows;
    for (const slot of slots.parked(lane)) {
      const isLapsed = slot.isOutOfLine === true || (!slot.isWaiting && (slot.offeredUntil as number) <= at);
      if (!isLapsed) continue;
      const state = tasks.get(slot.runId)?.state;
      if (this.#isGone(slot) || state === "parked") {
        slots.release(lane, slot);
        if (state === "parked" && !this.#isPaused(slot.runId)) {
          const route = this.#makeDue(slot.runId, at);
          if (route !== null) this.#port.emit([{ kind: "ready", workflows: [route] }]);
        }
      } else slots.put({ ...slot, isWaiting: true, isOutOfLine: true, offeredUntil: null });
    }
  }

  /** Whether the run cannot be offered a slot: a run that is resumed is due, and asks again. */
  #isGone({ runId }: MemorySlot): boolean {
    return !this.#rows.tasks.has(runId) || this.#isPaused(runId);
  }

  #isPaused(runId: string): boolean {
    const task = this.#rows.tasks.get(runId);
    return task?.state !== "owned" && task?.run.status === "paused";
  }

  #makeDue(runId: string, at: number): string | null {
    const task = this.#rows.tasks.get(runId);
    if (task?.state !== "parked") return null;
    this.#rows.taskQueues.enqueue(task, at, at);
    return task.route;
  }
}

const lanesToWake = (lanes: readonly LaneState[], at: number): readonly FreedSlots[] =>
  lanes.flatMap((lane): FreedSlots[] => {
    const count = roomIn(lane, at);
    return lane.unreadTurn !== null && count > 0 ? [{ lane: lane.id, count }] : [];
  });

const isOf = ({ owner, epoch }: MemorySlot, fence: Fence) => owner === fence.workerId && epoch === fence.epoch;
