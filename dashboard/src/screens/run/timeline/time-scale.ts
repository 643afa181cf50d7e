/**
 * Places instants on the width of the chart, from 0 to 1. Long stretches in which no code ran (a run may wait for days
 * between steps of milliseconds) are compressed to a fixed width, so that the executions stay visible.
 */
import type { Row } from "./waterfall.js";

export interface Segment {
  readonly from: number;
  readonly to: number;
  /** Where it begins and ends on the width. */
  readonly start: number;
  readonly end: number;
  readonly isCompressed: boolean;
}

export interface TimeScale {
  readonly segments: readonly Segment[];
  /** The place of an instant. */
  place(at: number): number;
}

interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly isCompressed: boolean;
}

/** An idle stretch that is this many times longer than all executions together is compressed. */
const idleFactor = 2;
/** Shorter stretches keep their width: even an execution of a millisecond has a visible bar. */
const minIdleMs = 1_000;
/** The width of a compressed stretch, and of all of them together. */
const maxGapWidth = 0.16;
const maxGapsWidth = 0.5;

export function timeScale(rows: readonly Row[], from: number, to: number, isCompressing: boolean): TimeScale {
  const whole = [{ from, to: Math.max(to, from + 1), isCompressed: false }];
  const stretches = isCompressing ? compress(rows, from, Math.max(to, from + 1)) : whole;
  const segments = placeStretches(stretches);
  return { segments, place: (at) => placeIn(segments, at) };
}

/** Finds the idle stretches between executions, and marks those that are long. */
function compress(rows: readonly Row[], from: number, to: number): Stretch[] {
  const cuts = [...new Set([from, to, ...rows.flatMap(boundariesOf)])]
    .filter((at) => at >= from && at <= to)
    .sort((a, b) => a - b);
  const busy = busyStretches(rows, to);
  const stretches = cuts.slice(1).map((end, index) => ({ from: cuts[index] as number, to: end, isCompressed: false }));
  const isIdle = ({ from: start, to: end }: Stretch) => !busy.some((one) => one.from < end && one.to > start);
  const idle = new Set(stretches.filter(isIdle));
  const busyMs = stretches.reduce((sum, one) => sum + (idle.has(one) ? 0 : one.to - one.from), 0);
  const longest = Math.max(idleFactor * busyMs, minIdleMs);
  const marked = stretches.map((one) =>
    idle.has(one) && one.to - one.from > longest ? { ...one, isCompressed: true } : one,
  );
  return marked.every(({ isCompressed }) => isCompressed) ? [{ from, to, isCompressed: false }] : joinAlike(marked);
}

/** The instants at which something begins or ends: no compressed stretch hides one. */
const boundariesOf = ({ spans }: Row) =>
  spans.flatMap((span) => (span.to === null ? [span.from] : [span.from, span.to]));

/** The executions, without those of steps whose body has calls of its own: their time is that of the calls. */
function busyStretches(rows: readonly Row[], to: number): { from: number; to: number }[] {
  const sorted = rows
    .flatMap((row, index) => ((rows[index + 1]?.depth ?? 0) > row.depth && row.group === null ? [] : row.spans))
    .filter(({ kind }) => kind === "execution")
    .map((span) => ({ from: span.from, to: span.to ?? to }))
    .sort((a, b) => a.from - b.from);
  const joined: { from: number; to: number }[] = [];
  for (const one of sorted) {
    const last = joined.at(-1);
    if (last !== undefined && one.from <= last.to) last.to = Math.max(last.to, one.to);
    else joined.push({ ...one });
  }
  return joined;
}

function joinAlike(stretches: readonly Stretch[]): Stretch[] {
  const joined: Stretch[] = [];
  for (const one of stretches) {
    const last = joined.at(-1);
    if (last !== undefined && !last.isCompressed && !one.isCompressed)
      joined[joined.length - 1] = { ...last, to: one.to };
    else joined.push(one);
  }
  return joined;
}

function placeStretches(stretches: readonly Stretch[]): Segment[] {
  const gaps = stretches.filter(({ isCompressed }) => isCompressed).length;
  const gapWidth = gaps === 0 ? 0 : Math.min(maxGapWidth, maxGapsWidth / gaps);
  const linearMs = stretches.reduce((sum, one) => sum + (one.isCompressed ? 0 : one.to - one.from), 0);
  const linearWidth = 1 - gaps * gapWidth;
  let start = 0;
  return stretches.map((one) => {
    const width = one.isCompressed ? gapWidth : (linearWidth * (one.to - one.from)) / linearMs;
    const segment = { ...one, start, end: start + width };
    start += width;
    return segment;
  });
}

function placeIn(segments: readonly Segment[], at: number): number {
  const segment = segments.find(({ to }) => at <= to) ?? segments.at(-1);
  if (segment === undefined) return 0;
  const share = (at - segment.from) / (segment.to - segment.from);
  return segment.start + Math.min(1, Math.max(0, share)) * (segment.end - segment.start);
}
