/** Realistic logs and logs that no run would ever have; seeded, so that they are the same each time. */

import type { Failure } from "../../src/core/encoding/error-record.js";
import { type NewEvent, newEvent, type StepOutcome } from "../../src/core/run/event.js";
import { SeededRandom } from "../../src/testing/store-suite/seeded-random.js";

export interface RandomLog {
  /** The events of each commit. */
  readonly commits: readonly (readonly NewEvent[])[];
  readonly end: "completed" | "failed" | "canceled" | null;
}

/** Some names differ only in case, or contain non-ASCII characters. */
const steps = ["charge", "Charge", "ship it", "send/inner", "load#2", "größe", "50%"];

const outcomes: readonly StepOutcome[] = [
  "success",
  "reattempted",
  "continued",
  "skipped_by_condition",
  "skipped_by_exception",
  "canceled_by_condition",
  "reattempted_by_exception",
  "failed_by_exception",
  "paused_by_exception",
  "workflow_paused",
  "timed_out",
];

export function randomLog(seed: number): RandomLog {
  const random = new SeededRandom(seed);
  const names = random.sample(steps, 3);
  const oddness = random.pick([0, 0, 0.2, 1]) as number;
  const author = new RandomLogWriter(random, names.length === 0 ? ["only"] : names, oddness);
  const perCommit = random.pick([1, 3, 12]) as number;
  const commits = Array.from({ length: random.integerBelow(18) }, () =>
    Array.from({ length: 1 + random.integerBelow(perCommit) }, () => author.next()),
  );
  return { commits, end: random.pick(["completed", "failed", "canceled", null, null, null]) as RandomLog["end"] };
}

/** Counts attempts as a run does; with the probability `oddness` it returns a random attempt or none. */
class RandomLogWriter {
  readonly #random: SeededRandom;
  readonly #steps: readonly string[];
  readonly #oddness: number;
  readonly #attempts = new Map<string, number>();
  /** Steps whose latest attempt has not ended. */
  readonly #open = new Set<string>();
  /** The next events, if they are determined. */
  readonly #sequel: NewEvent[] = [];

  constructor(random: SeededRandom, names: readonly string[], oddness: number) {
    this.#random = random;
    this.#steps = names;
    this.#oddness = oddness;
  }

  next(): NewEvent {
    return this.#sequel.shift() ?? this.#any();
  }

  #any(): NewEvent {
    const random = this.#random;
    const node = random.pick(this.#steps) as string;
    const write = random.pickWeighted<() => NewEvent>([
      [2, () => newEvent("step.scheduled", this.#place(node), { waitMs: random.integerBelow(1000) })],
      [3, () => newEvent("step.started", this.#place(node), random.chance(0.5) ? {} : undefined)],
      [8, () => this.#end(node)],
      [1.5, () => newEvent("run.paused", random.chance(0.8) ? { node } : {}, { reason: "why not" })],
      [1.5, () => newEvent("run.resumed", {}, { by: "operator" })],
      [0.7, () => newEvent("run.recovered", {}, { deliveries: 2 })],
      [0.4, () => newEvent("run.moved", {}, { to: node })],
      [0.6, () => newEvent("run.reattempted", {}, { waitMs: 5, rewind: random.chance(0.5) })],
      // Events that the view must ignore, or treat as unknown.
      [0.5, () => newEvent("run.cancel_requested", {}, {})],
      [0.5, () => newEvent("timer.started", { node }, { ms: 5 })],
      [0.3, () => newEvent("signal.received", {}, { name: "step.completed", payload: { retryMs: 7 } })],
      [0.3, () => ({ ...newEvent("run.woken", random.chance(0.5) ? { node } : {}), type: "step.of_tomorrow" })],
    ]);
    return write();
  }

  #place(node: string): { node: string; attempt?: number } {
    const attempt = this.#attempt(node);
    this.#open.add(node);
    return attempt === undefined ? { node } : { node, attempt };
  }

  #attempt(node: string): number | undefined {
    if (this.#random.chance(this.#oddness)) return this.#random.pick([undefined, 1, 2, 3, 7]);
    const last = this.#attempts.get(node) ?? 0;
    const attempt = this.#open.has(node) ? last : last + 1;
    this.#attempts.set(node, attempt);
    return attempt;
  }

  #end(node: string): NewEvent {
    const random = this.#random;
    const outcome = random.chance(0.95) ? { outcome: random.pick(outcomes) as StepOutcome } : {};
    const place = { ...this.#place(node), ...outcome };
    // Sometimes the step continues after its end.
    if (random.chance(0.9)) this.#open.delete(node);
    const ms = random.chance(0.7) ? { ms: random.integerBelow(50) } : {};
    const wait = random.integerBelow(500);
    // A step that pauses its run; sometimes the run is resumed immediately.
    if (random.chance(0.2)) this.#sequel.push(newEvent("run.paused", { node }, { reason: "it said so" }));
    if (random.chance(0.1)) this.#sequel.push(newEvent("run.resumed", {}, { by: "operator" }));
    const write = random.pickWeighted<() => NewEvent>([
      // An output that resembles the data around it must not be mistaken for that data.
      [3, () => newEvent("step.completed", place, ms, { output: '{"by":1,"retryMs":4,"error":{"message":"no"}}' })],
      [1, () => newEvent("step.completed", place, { by: "operator" }, { output: "7" })],
      [3, () => newEvent("step.failed", place, { error: this.#failure(), ...ms, retryMs: wait })],
      [2, () => newEvent("step.failed", place, { error: this.#failure(), ...ms })],
      [2, () => newEvent("step.reattempted", place, { waitMs: wait, ...ms })],
      [1, () => newEvent("step.skipped", place, random.chance(0.5) ? { error: this.#failure(), ...ms } : ms)],
      [1, () => newEvent("step.skipped", place, { by: random.chance(0.5) ? "operator" : "code" })],
      [1, () => newEvent("step.canceled", place, ms)],
      [0.5, () => newEvent("step.completed", place)],
    ]);
    return write();
  }

  #failure(): Failure {
    return { name: "Error", message: this.#random.pick(["boom", "", `it's "so" bad: 100 %\n\\u0041 \\`]) as string };
  }
}
