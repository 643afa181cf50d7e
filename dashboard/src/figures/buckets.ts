/** Figures per minute, added up to as many columns as a chart has room for. */
import type { Answer } from "../api/api.js";

export type MinuteFigures = Answer<"getFigures">["minutes"][number];

export interface Bucket {
  /** The beginning, and the end, which does not belong to it. */
  readonly from: number;
  readonly to: number;
  readonly began: number;
  readonly completed: number;
  readonly failed: number;
  readonly canceled: number;
  readonly paused: number;
}

export type Totals = Omit<Bucket, "from" | "to">;

export const minuteMs = 60_000;
/** Widths of columns that people can read, in minutes. */
const widths = [1, 2, 5, 10, 15, 30, 60];

const noTotals: Totals = { began: 0, completed: 0, failed: 0, canceled: 0, paused: 0 };

const add = <T extends Totals>(sum: T, more: Totals): T => ({
  ...sum,
  began: sum.began + more.began,
  completed: sum.completed + more.completed,
  failed: sum.failed + more.failed,
  canceled: sum.canceled + more.canceled,
  paused: sum.paused + more.paused,
});

export const totalsOf = (parts: readonly Totals[]): Totals => parts.reduce<Totals>(add, noTotals);

/** The columns begin at whole multiples of their width, so that they do not move while time passes. */
export function bucketsOf(minutes: readonly MinuteFigures[], maxCount: number): readonly Bucket[] {
  const width = (widths.find((one) => minutes.length / one <= maxCount) ?? 60) * minuteMs;
  const buckets: Bucket[] = [];
  for (const minute of minutes) {
    const at = Date.parse(minute.at);
    const from = Math.floor(at / width) * width;
    const last = buckets.at(-1);
    if (last === undefined || last.from !== from) buckets.push({ ...noTotals, ...minute, from, to: from + width });
    else buckets[buckets.length - 1] = add(last, minute);
  }
  return buckets;
}

/** How a number compares with an earlier one: "+12 %", "same", or "+12" if there was nothing before. */
export function changeText(now: number, before: number): string {
  if (now === before) return "same";
  if (before === 0) return `+${now.toLocaleString("en")}`;
  const percent = Math.round(((now - before) / before) * 100);
  if (percent >= 1_000) return `× ${Math.round(now / before).toLocaleString("en")}`;
  return percent === 0 ? "about the same" : `${percent > 0 ? "+" : "−"}${Math.abs(percent)} %`;
}

/** The top of an axis: the next number of the form 1, 2, 5, 10, 20 … that is not smaller. */
export function niceMaximum(value: number): number {
  if (value <= 4) return Math.max(1, Math.ceil(value));
  const scale = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((step) => step * scale >= value) ?? 10) * scale;
}
