/** Many rows are inserted with few statements. */

/** The number of rows of one INSERT: with 13 columns each, it stays far below the limits on bound values. */
const maxRowsPerStatement = 500;
/** The characters of one INSERT: a server refuses packets above 16 MiB, and a character may become six bytes. */
const maxCharactersPerStatement = 1_000_000;

/** Splits rows among as many statements as their number and their length need. */
export function splitRows(rows: readonly (readonly unknown[])[]): (readonly (readonly unknown[])[])[] {
  const parts: (readonly unknown[])[][] = [];
  let remainingCharacters = 0;
  for (const row of rows) {
    const characters = row.reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 0), 0);
    let part = parts.at(-1);
    if (part === undefined || part.length === maxRowsPerStatement || characters > remainingCharacters) {
      part = [];
      parts.push(part);
      remainingCharacters = maxCharactersPerStatement;
    }
    part.push(row);
    remainingCharacters -= characters;
  }
  return parts;
}
