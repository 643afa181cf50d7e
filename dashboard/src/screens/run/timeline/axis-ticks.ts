/** The marks of the time axis: the clock at the beginning of each stretch, then even steps. */
import { formatDuration } from "../../../ui/time.js";
import type { Segment, TimeScale } from "./time-scale.js";

export interface Tick {
  readonly at: number;
  readonly place: number;
  /** "" if there is no room for a text. */
  readonly label: string;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500]
  .concat([1, 2, 5, 10, 20, 30].map((count) => count * second))
  .concat([1, 2, 5, 10, 20, 30].map((count) => count * minute))
  .concat([1, 2, 4, 8, 12].map((count) => count * hour))
  .concat([1, 2, 5, 10, 20, 50, 100, 200].map((count) => count * day));

const tickWidth = 76;
const clockWidth = 84;

/** @param width the width of the chart in pixels */
export function axisTicks(scale: TimeScale, width: number, clock: (at: number) => string): Tick[] {
  return scale.segments
    .filter(({ isCompressed }) => !isCompressed)
    .flatMap((segment) => ticksOf(segment, width, clock));
}

function ticksOf(segment: Segment, width: number, clock: (at: number) => string): Tick[] {
  const pixels = (segment.end - segment.start) * width;
  const ms = segment.to - segment.from;
  const step = steps.find((one) => (one / ms) * pixels >= tickWidth) ?? ms;
  const first = { at: segment.from, place: segment.start, label: pixels >= clockWidth ? clock(segment.from) : "" };
  const count = Math.floor((ms - 1) / step);
  const rest = Array.from({ length: Math.min(count, 100) }, (_, index) => {
    const offset = (index + 1) * step;
    const place = segment.start + (offset / ms) * (segment.end - segment.start);
    const fromStart = (offset / ms) * pixels;
    const hasRoom = fromStart >= clockWidth && pixels - fromStart >= 48;
    return { at: segment.from + offset, place, label: hasRoom ? `+${formatStep(offset)}` : "" };
  });
  return [first, ...rest];
}

/** Offsets are even, so a unit with nothing in it is left out: "2 m", not "2 m 00 s". */
const formatStep = (ms: number) =>
  formatDuration(ms)
    .replace(/ 00 [a-z]+$/, "")
    .replace(".0 s", " s");
