/** Rates: in any window of their length, not more than the limit, the burst, and the units of one admission may begin. */
import type { LimitFold } from "./limit-fold.js";
import type { HistoryEntry } from "./limit-history.js";
import type { RateValues } from "./limit-values.js";

interface Begun {
  readonly at: number;
  readonly units: number;
  /** What the rate may have been. */
  readonly rates: readonly (RateValues | null)[];
}

/** A run or a step that holds a slot from now on. A step that waits has its row before. */
export const takesSlot = ({ what, waits, owner, node }: HistoryEntry): boolean =>
  what === "slot_taken" ? waits !== 1 : what === "slot_changed" && waits === 0 && (node ?? "") !== "" && owner !== null;

export class Rates {
  readonly #violations: string[];
  readonly #begun = new Map<string, Begun[]>();
  fullestWindow = 0;

  constructor(violations: string[]) {
    this.#violations = violations;
  }

  after(entry: HistoryEntry, fold: LimitFold): void {
    if (!takesSlot(entry)) return;
    const lane = entry.lane as string;
    const at = entry.value as number;
    const rates = fold.limitOf(lane).rates(at);
    if (rates.every((rate) => rate === null)) return;
    const begun = this.#begun.get(lane) ?? [];
    this.#begun.set(lane, begun);
    begun.push({ at, units: entry.units ?? 1, rates });
    this.#check(entry, begun);
  }

  /** Looks at the window that ends with the last one. Where the rate may have changed within the window, the higher one counts. */
  #check({ seq, lane }: HistoryEntry, begun: Begun[]): void {
    const last = begun.at(-1) as Begun;
    if (last.rates.includes(null)) return;
    const perMs = Math.min(...(last.rates as readonly RateValues[]).map((rate) => rate.perMs));
    const inWindow = begun.filter(({ at }) => at > last.at - perMs && at <= last.at);
    const rates = inWindow.flatMap((one) => one.rates);
    if (rates.includes(null)) return;
    const most = Math.max(...(rates as readonly RateValues[]).map(({ limit, burst }) => limit + burst));
    const largest = Math.max(...inWindow.map(({ units }) => units));
    const sum = inWindow.reduce((total, { units }) => total + units, 0);
    this.fullestWindow = Math.max(this.fullestWindow, sum / (most + largest));
    if (sum > most + largest)
      this.#violations.push(
        `${seq}: ${sum} units began in ${perMs} ms in ${String(lane).replace("\t", ":")}, which may have ${most} and ${largest} more.`,
      );
    // What is long past is not looked at again, but an admission may have read the clock before this one.
    if (begun.length > 10_000) begun.splice(0, 5_000);
  }
}
