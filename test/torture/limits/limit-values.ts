/** Which values of a limit an admission may have read, as far as the history can tell. */

export interface RateValues {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
}

interface Values {
  readonly concurrency: number | null;
  readonly rate: RateValues | null;
}

interface Override extends Partial<Values> {
  /** When it ends; null: never. */
  readonly until: number | null;
}

/** What the row of the limit said for some time. */
interface Candidate extends Values {
  readonly text: string;
  readonly override: Override | null;
  readonly setAt: number;
  /** Admissions that read the clock after this instant do not see the row any more. */
  obsoleteAt: number;
}

/** By then a statement of its own is committed and visible. */
const commitMs = 5_000;
/** An admission reads the limits some time before it reads the clock. */
const readMs = 2_000;

export class LimitValues {
  readonly #candidates: Candidate[] = [];

  set(settings: string, override: string | null, at: number): void {
    const { concurrency, rate } = JSON.parse(settings) as Values;
    this.#candidates.push({
      ...{ concurrency, rate, text: textOf(settings, override), setAt: at, obsoleteAt: Number.POSITIVE_INFINITY },
      override: override === null ? null : (JSON.parse(override) as Override),
    });
  }

  /** The row was read, so what was in force before it is not any more. What was set long before is committed. */
  see(settings: string, override: string | null, at: number): void {
    const committed = this.#candidates.findLastIndex(({ setAt }) => setAt < at - commitMs);
    const text = textOf(settings, override);
    const first = this.#candidates.findIndex((one) => one.text === text && one.obsoleteAt === Number.POSITIVE_INFINITY);
    for (const candidate of this.#candidates.slice(0, Math.max(committed, first, 0)))
      candidate.obsoleteAt = Math.min(candidate.obsoleteAt, at + readMs);
  }

  /** The lowest and the highest concurrency that an admission may have read that read the clock at this instant. */
  concurrency(readAt: number): { readonly least: number; readonly most: number } {
    const values = this.#inForce(readAt).map(({ concurrency }) => concurrency ?? Number.POSITIVE_INFINITY);
    return values.length === 0 ? { least: 0, most: 0 } : { least: Math.min(...values), most: Math.max(...values) };
  }

  /** The rates that an admission may have read; null stands for none. */
  rates(readAt: number): readonly (RateValues | null)[] {
    return this.#inForce(readAt).map(({ rate }) => rate);
  }

  #inForce(readAt: number): readonly Values[] {
    return this.#candidates
      .filter(({ obsoleteAt }) => readAt <= obsoleteAt)
      .map(({ concurrency, rate, override }) =>
        override === null || (override.until !== null && override.until <= readAt)
          ? { concurrency, rate }
          : {
              concurrency: override.concurrency === undefined ? concurrency : override.concurrency,
              rate: override.rate === undefined ? rate : override.rate,
            },
      );
  }
}

const textOf = (settings: string, override: string | null) => `${settings}\n${override ?? ""}`;
