/** Which faults a world injects, and how often. */
import { Random } from "./random.js";

/** Faults of one store call. */
export const callFaults = [
  /** The call fails and changes nothing. */
  "error",
  /** The database refuses the call because of a conflict with another transaction; it changes nothing. */
  "deadlock",
  /** The call takes effect, and its answer is an error. */
  "lost-answer",
  /** The answer is an error, and the call takes effect later. */
  "late-commit",
  /** No answer arrives until the deadline of the connection has passed; the call may have taken effect. */
  "unanswered",
  /** The call takes seconds, so that others take effect between it and its neighbours. */
  "slow",
  /** The call takes effect at once, and its answer is late, so that what it says may not be true any more. */
  "stale-answer",
] as const;

export const hintFaults = ["lost-hint", "doubled-hint", "late-hint"] as const;

/** Faults of a whole process. */
const processFaults = ["crash", "freeze", "clock-jump"] as const;

export const faultKinds = [...callFaults, ...hintFaults, ...processFaults] as const;

export type CallFault = (typeof callFaults)[number];
export type HintFault = (typeof hintFaults)[number];
export type FaultKind = (typeof faultKinds)[number];

export interface FaultOptions {
  /** Faults that are left out; for shrinking. */
  readonly without?: ReadonlySet<string>;
  /** Only so many faults of calls and hints are injected; for shrinking. */
  readonly limit?: number;
  /** How often kinds of faults are injected; for worlds that need more of them than the seed has. */
  readonly rates?: FaultRates;
}

/** The share of calls, or hints, that have the fault. */
export type FaultRates = Readonly<Record<string, number>>;

export class Faults {
  /** How often each fault was injected. */
  readonly injected = new Map<FaultKind, number>();
  isOn = true;
  readonly #random: Random;
  readonly #rates: Map<FaultKind, number>;
  readonly #options: FaultOptions;
  #count = 0;

  constructor(seed: number, options: FaultOptions = {}) {
    const ratesRandom = new Random(seed, "rates");
    this.#random = new Random(seed, "faults");
    this.#rates = new Map(faultKinds.map((kind) => [kind, ratesRandom.pick([0, 0, 0.003, 0.01, 0.04])]));
    for (const kind of faultKinds) this.#rates.set(kind, options.rates?.[kind] ?? (this.#rates.get(kind) as number));
    this.#options = options;
  }

  /** How many faults of calls and hints were injected. */
  get count(): number {
    return this.#count;
  }

  ofCall(): CallFault | null {
    return this.#draw(callFaults);
  }

  ofHint(): HintFault | null {
    return this.#draw(hintFaults);
  }

  /** Whether the world has this fault at all; how often, its plan says. */
  allows(kind: FaultKind): boolean {
    return this.#options.without?.has(kind) !== true;
  }

  note(kind: FaultKind): void {
    this.injected.set(kind, (this.injected.get(kind) ?? 0) + 1);
  }

  #draw<Kind extends FaultKind>(kinds: readonly Kind[]): Kind | null {
    let drawn = this.#random.next();
    if (!this.isOn) return null;
    for (const kind of kinds) {
      drawn -= this.#rates.get(kind) ?? 0;
      if (drawn >= 0) continue;
      if (!this.allows(kind) || this.#count >= (this.#options.limit ?? Number.POSITIVE_INFINITY)) return null;
      this.#count += 1;
      this.note(kind);
      return kind;
    }
    return null;
  }
}
