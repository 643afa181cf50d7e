/** Workflows as data: the input of a run in function style is a list of operations, which its handler interprets. */
import type { Random } from "../kernel/random.js";
import type { BodyPlan } from "./bench.js";
import type { StepLimitName } from "./limited-workflows.js";

export type Op =
  | ({ readonly op: "step"; readonly name: string } & BodyPlan & {
        readonly timeout?: number;
        readonly compensates?: boolean;
        readonly onCrash?: "pause";
        /** The code catches whatever the step throws and goes on. */
        readonly isSwallowed?: boolean;
        readonly limit?: StepLimitName;
        readonly units?: number;
      })
  | {
      readonly op: "sleep";
      readonly name: string;
      readonly ms: number;
      readonly isUntil?: boolean;
      /** The code catches what interrupts it, and goes on. */
      readonly isSwallowed?: boolean;
    }
  | { readonly op: "signal"; readonly name: string; readonly timeout?: number }
  | { readonly op: "any" | "all"; readonly names: readonly string[]; readonly timeout?: number }
  | { readonly op: "race"; readonly name: string; readonly signal: string; readonly ms: number }
  | { readonly op: "child"; readonly name: string; readonly program: Program; readonly isLimited?: boolean }
  | { readonly op: "spawn"; readonly name: string; readonly program: Program }
  | {
      readonly op: "map";
      readonly name: string;
      readonly items: readonly Program[];
      readonly concurrency: number;
    }
  | ({ readonly op: "transaction"; readonly name: string } & BodyPlan & {
        readonly timeout?: number;
        /** The handle is used after the step has ended. */
        readonly isLate?: boolean;
        /** A deadlock is caught by the code. */
        readonly isDeadlocked?: boolean;
      })
  | { readonly op: "parallel"; readonly branches: readonly Program[] }
  | { readonly op: "branch"; readonly name: string; readonly program: Program }
  | { readonly op: "chance"; readonly name: string }
  | { readonly op: "hold"; readonly name: string; readonly recheck: number }
  | { readonly op: "pause" }
  | { readonly op: "detached"; readonly name: string; readonly ms: number }
  | { readonly op: "stray"; readonly name: string; readonly ms: number }
  | {
      readonly op: "changed";
      readonly name: string;
      readonly ms: number;
      readonly change: "renamed" | "removed" | "reordered";
    }
  | { readonly op: "added"; readonly name: string; readonly ms: number }
  | { readonly op: "patch"; readonly name: string; readonly ms: number }
  | { readonly op: "fail" };

export type Program = readonly Op[];

/** Signals have few names, so that several waits of a run compete for them. */
export const signalNames = ["go", "stop", "paid"] as const;

export class ProgramMaker {
  readonly #random: Random;
  #names = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  make(length = this.#random.int(2, 6), depth = 0): Program {
    return Array.from({ length }, () => this.#op(depth));
  }

  #name(prefix: string): string {
    this.#names += 1;
    return `${prefix}${this.#names}`;
  }

  #op(depth: number): Op {
    const random = this.#random;
    const nested = depth < 2 ? 1 : 0;
    const kind = random.weighted({
      step: 12,
      sleep: 4,
      signal: 4,
      any: 1,
      all: 1,
      race: 2,
      child: 2 * nested,
      spawn: nested,
      map: 1.5 * nested,
      transaction: 3,
      parallel: 2 * nested,
      branch: nested,
      chance: 1,
      hold: 0.7,
      pause: 0.3,
      detached: 0.5,
      stray: 0.3,
      changed: 0.7,
      added: 1,
      patch: 1,
      fail: depth > 0 ? 0.5 : 0.25,
    });
    const timeout = random.chance(0.5) ? { timeout: random.int(500, 8_000) } : {};
    switch (kind) {
      case "step":
        return { op: "step", name: this.#name("s"), ...this.#body(), ...this.#stepOptions() };
      case "sleep":
        return {
          op: "sleep",
          name: this.#name("z"),
          ms: random.int(20, 6_000),
          isUntil: random.chance(0.3),
          ...this.#swallowed(),
        };
      case "signal":
        return { op: "signal", name: random.pick(signalNames), ...timeout };
      case "any":
      case "all":
        return { op: kind, names: random.chance(0.5) ? ["go", "stop"] : ["paid", "go"], ...timeout };
      case "race":
        return { op: "race", name: this.#name("r"), signal: random.pick(signalNames), ms: random.int(200, 5_000) };
      case "child":
        return {
          op: "child",
          name: this.#name("c"),
          program: this.make(random.int(1, 3), depth + 1),
          isLimited: random.chance(0.3),
        };
      case "spawn":
        return { op: "spawn", name: this.#name("c"), program: this.make(random.int(1, 2), depth + 1) };
      case "map": {
        const items = Array.from({ length: random.int(2, 4) }, () => this.make(random.int(1, 2), 2));
        return { op: "map", name: this.#name("m"), items, concurrency: random.int(1, 3) };
      }
      case "transaction":
        return {
          ...{ op: "transaction", name: this.#name("t"), ...this.#body() },
          ...(random.chance(0.15) ? { isLate: true } : {}),
          ...(random.chance(0.1) ? { isDeadlocked: true } : {}),
        };
      case "parallel":
        return {
          op: "parallel",
          branches: Array.from({ length: random.int(2, 3) }, () => this.make(random.int(1, 2), depth + 1)),
        };
      case "branch":
        return { op: "branch", name: this.#name("b"), program: this.make(random.int(1, 2), depth + 1) };
      case "hold":
        return { op: "hold", name: this.#name("h"), recheck: random.int(1_000, 4_000) };
      case "pause":
      case "fail":
        return { op: kind };
      case "changed": {
        const change = random.pick(["renamed", "removed", "reordered"] as const);
        return { op: kind, name: this.#name("v"), ms: random.int(1, 200), change };
      }
      case "stray":
        return { op: kind, name: this.#name("y"), ms: random.int(1, 3_000) };
      case "detached":
      case "added":
      case "patch":
        return { op: kind, name: this.#name(kind[0] as string), ms: random.int(1, 200) };
      case "chance":
        return { op: "chance", name: this.#name("x") };
    }
  }

  #body(): BodyPlan {
    const random = this.#random;
    const ms = random.chance(0.1) ? random.int(500, 4_000) : random.int(1, 80);
    if (random.chance(0.02)) return { ms, fails: 9, error: "permanent" };
    if (random.chance(0.2))
      return { ms, fails: random.int(1, 2), error: random.pick(["error", "transient", "no error"] as const) };
    return { ms };
  }

  #swallowed() {
    return this.#random.chance(0.05) ? { isSwallowed: true } : {};
  }

  #stepOptions() {
    const random = this.#random;
    return {
      ...(random.chance(0.1) ? { timeout: random.int(20, 300), ...(random.chance(0.2) ? { hangs: 1 } : {}) } : {}),
      ...(random.chance(0.1) ? { limit: "machines" as const } : {}),
      ...(random.chance(0.07) ? { limit: "meter" as const, units: random.int(0, 6) } : {}),
      ...(random.chance(0.15) ? { compensates: true } : {}),
      ...(random.chance(0.05) ? { onCrash: "pause" as const } : {}),
      ...(random.chance(0.05) ? { isSwallowed: true } : {}),
      ...(random.chance(0.02) ? { kills: random.pick([1, 2, 3, 20]) } : {}),
    };
  }
}
