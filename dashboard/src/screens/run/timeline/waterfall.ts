/** The waterfall as the API returns it, with instants as numbers. */
import type { Answer } from "../../../api/api.js";

type WaterfallAnswer = Answer<"getRunWaterfall">;
type AnswerRow = WaterfallAnswer["rows"][number];
type AnswerSpan = AnswerRow["spans"][number];

export interface Span extends Omit<AnswerSpan, "from" | "to" | "dueAt"> {
  readonly from: number;
  readonly to: number | null;
  readonly dueAt: number | null;
}

export interface Row extends Omit<AnswerRow, "spans"> {
  readonly spans: readonly Span[];
}

export interface Waterfall extends Omit<WaterfallAnswer, "from" | "to" | "now" | "rows"> {
  readonly from: number;
  readonly to: number;
  readonly rows: readonly Row[];
}

const instant = (text: string | null) => (text === null ? null : Date.parse(text));

const parseRow = (row: AnswerRow): Row => ({
  ...row,
  spans: row.spans.map((span) => ({
    ...span,
    from: Date.parse(span.from),
    to: instant(span.to),
    dueAt: instant(span.dueAt),
  })),
});

export const parseWaterfall = (answer: WaterfallAnswer): Waterfall => ({
  ...answer,
  from: Date.parse(answer.from),
  to: Date.parse(answer.to),
  rows: answer.rows.map(parseRow),
});

/** The rows with the members of open groups behind their groups. A group whose members are being read has none yet. */
export function withMembers(rows: readonly Row[], membersOf: ReadonlyMap<string, readonly Row[]>): Row[] {
  return rows.flatMap((row) => {
    const members = row.group === null ? undefined : membersOf.get(row.group.id);
    return members === undefined ? [row] : [row, ...withMembers(members, membersOf)];
  });
}
