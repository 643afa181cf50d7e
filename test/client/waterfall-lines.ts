/** Reads waterfalls, and writes their rows as lines. */
import type { RunHandle } from "pawl";
import type { TestPawl } from "pawl/testing";
import { readWaterfall, type WaterfallRequest } from "../../src/client/inspect/waterfall/read-waterfall.js";
import type { WaterfallRow } from "../../src/client/inspect/waterfall/rows.js";
import type { Waterfall } from "../../src/client/inspect/waterfall/waterfall.js";

type Run = Pick<RunHandle<any, any>, "id">;

export const read = (t: Pick<TestPawl, "pawl">, run: Run, request: WaterfallRequest = {}): Promise<Waterfall> =>
  readWaterfall(t.pawl.internals.store, run.id, request);

/** A row as a line: its place, name and state, then its spans. Spans without length have no duration. */
export function lineOf({ depth, kind, name, state, group, spans }: WaterfallRow): string {
  const texts = spans.map((span) => {
    const took = span.to === null ? "…" : span.to === span.from ? "" : ` ${span.to - span.from}`;
    return `${span.kind}${span.waitsFor === null ? "" : ` ${span.waitsFor}`}${took}${span.count > 1 ? ` ×${span.count}` : ""}`;
  });
  const count = group === null ? "" : ` ×${group.count}`;
  return `${"  ".repeat(depth)}${kind} ${name}${count} ${state}${texts.length === 0 ? "" : `: ${texts.join(", ")}`}`;
}

export const linesOf = ({ rows }: Waterfall) => rows.map(lineOf);
export const rowOf = ({ rows }: Waterfall, name: string) => rows.find((row) => row.name === name) as WaterfallRow;
export const countSpans = ({ rows }: Waterfall) => rows.reduce((sum, { spans }) => sum + spans.length, 0);
export const take = (t: () => TestPawl, ms: number) => () => t().clock.moveTo(t().clock.now.getTime() + ms);
