/** Renders a table of text that fits the available width. */
import type { Colour, Paint } from "./paint.js";

export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** The column is truncated only as a last resort: for ids, which users copy. */
  readonly whole?: true;
  /** The column is left out if there is no room for at least this many characters. */
  readonly spareFrom?: number;
}

export type Cell = string | { readonly text: string; readonly colour: Colour };

export interface TableOptions {
  readonly columns: number;
  readonly paint: Paint;
  /** Whether `whole` columns may be truncated, too: on a terminal, not in a pipe. */
  readonly cutWhole: boolean;
}

const gap = 2;
const minColumnWidth = 6;

export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[], options: TableOptions): string[] {
  const texts = [columns.map(({ title }) => title), ...rows.map((row) => row.map(textOf))];
  const naturalWidths = columns.map((_, index) => Math.max(...texts.map((row) => width(row[index] ?? ""))));
  const widths = widthsThatFit(columns, naturalWidths, options);
  const line = (cells: readonly Cell[], colour: Colour | null) =>
    cells
      .flatMap((cell, index) => {
        const cellWidth = widths[index] as number;
        if (cellWidth === 0) return [];
        const padded = pad(truncate(textOf(cell), cellWidth), cellWidth, columns[index]?.align);
        const cellColour = colour ?? (typeof cell === "string" ? null : cell.colour);
        return [cellColour === null ? padded : options.paint(cellColour, padded)];
      })
      .join(" ".repeat(gap))
      .trimEnd();
  const titles = columns.map(({ title }) => title);
  const head = titles.every((title) => title === "") ? [] : [line(titles, "dim")];
  return [...head, ...rows.map((row) => line(row, null))];
}

/** Columns with `spareFrom` shrink first, then the widest of the others, then those that are `whole`. */
function widthsThatFit(
  columns: readonly Column[],
  naturalWidths: readonly number[],
  { columns: availableWidth, cutWhole }: TableOptions,
) {
  const widths = [...naturalWidths];
  const excess = () => {
    const shown = widths.filter((columnWidth) => columnWidth > 0);
    return (
      shown.reduce((sum, columnWidth) => sum + columnWidth, 0) + gap * Math.max(0, shown.length - 1) - availableWidth
    );
  };
  for (let index = columns.length - 1; index >= 0; index -= 1) {
    const from = columns[index]?.spareFrom;
    const excessWidth = excess();
    if (from === undefined || excessWidth <= 0) continue;
    const remainingWidth = (widths[index] as number) - excessWidth;
    widths[index] = remainingWidth >= from ? remainingWidth : 0;
  }
  const shrink = (mayBeCut: (column: Column) => boolean) => {
    while (excess() > 0) {
      const widest = columns.reduce(
        (best, column, index) =>
          mayBeCut(column) && (widths[index] as number) > (best === -1 ? minColumnWidth : (widths[best] as number))
            ? index
            : best,
        -1,
      );
      if (widest === -1) return;
      widths[widest] = (widths[widest] as number) - 1;
    }
  };
  shrink((column) => column.whole !== true);
  if (cutWhole) shrink(() => true);
  return widths;
}

const textOf = (cell: Cell) => printable(typeof cell === "string" ? cell : cell.text);

/** Replaces control characters with spaces: text from users could otherwise move the cursor, or worse. */
export const printable = (text: string): string => text.replace(/\p{Cc}+/gu, " ");

const width = (text: string) => [...text].length;

export function truncate(text: string, maxWidth: number): string {
  const letters = [...text];
  return letters.length <= maxWidth ? text : `${letters.slice(0, maxWidth - 1).join("")}…`;
}

function pad(text: string, room: number, align: Column["align"]): string {
  const space = " ".repeat(Math.max(0, room - width(text)));
  return align === "right" ? `${space}${text}` : `${text}${space}`;
}
