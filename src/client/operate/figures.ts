/** Reads how many runs began and ended per minute. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import type { MinuteFigures, Store } from "../../store/contract/store.js";
import { parseInstant } from "../start/new-run.js";

/** Options of `pawl.figures`. */
export interface FiguresOptions {
  /** The first minute. Default: an hour before the last. */
  readonly from?: Date | number | undefined;
  /** The last minute. Default: the present one. At most two days after the first. */
  readonly to?: Date | number | undefined;
  /** Only runs of this workflow. Default: of all workflows. */
  readonly workflow?: string | undefined;
}

const figuresOptions = new Set<string>(["from", "to", "workflow"] satisfies (keyof FiguresOptions)[]);

/** What happened within one minute, as `pawl.figures()` returns it. */
export interface Figures {
  /** The beginning of the minute. */
  readonly at: Date;
  /** How many runs a worker has begun. */
  readonly began: number;
  /** How many runs completed. */
  readonly completed: number;
  /** How many runs failed. */
  readonly failed: number;
  /** How many runs were canceled. */
  readonly canceled: number;
  /** How many times a run was paused. */
  readonly paused: number;
}

const minuteMs = 60_000;
const maxMinutes = 2 * 24 * 60;

/**
 * Every process counts what it commits and adds its counts to the table every few seconds, so the last minute grows for a
 * while, and the last seconds of a process that was killed are missing.
 */
export async function readFigures(store: Store, options: FiguresOptions): Promise<Figures[]> {
  checkOptions("figures()", options, figuresOptions);
  const to = toMinute(options.to === undefined ? await store.now() : parseInstant("to", options.to));
  const from = options.from === undefined ? to - 59 : toMinute(parseInstant("from", options.from));
  if (to < from || to - from > maxMinutes)
    throw new InvalidInputError("figures({ from, to }) must be in order, and at most two days apart.");
  const rows = await store.maintenance.questions.figures({ from, to });
  const sums = new Map<number, Mutable<Figures>>();
  for (let minute = from; minute <= to; minute += 1) sums.set(minute, newFigures(minute));
  for (const row of rows)
    if (options.workflow === undefined || options.workflow === row.workflow)
      add(sums.get(row.minute) as Mutable<Figures>, row);
  return [...sums.values()];
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

const toMinute = (at: number) => Math.floor(at / minuteMs);

const newFigures = (minute: number): Mutable<Figures> => ({
  at: new Date(minute * minuteMs),
  ...{ began: 0, completed: 0, failed: 0, canceled: 0, paused: 0 },
});

function add(sum: Mutable<Figures>, row: MinuteFigures): void {
  sum.began += row.began;
  sum.completed += row.completed;
  sum.failed += row.failed;
  sum.canceled += row.canceled;
  sum.paused += row.paused;
}
