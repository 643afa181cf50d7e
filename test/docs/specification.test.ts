/** Every row of docs/specification.md names tests that prove it, and those tests exist. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/specification.md"), "utf8");

interface Row {
  readonly line: number;
  readonly cells: readonly string[];
}

/** The rows of all tables, without their headings. */
function rowsOf(text: string): Row[] {
  const lines = text.split("\n");
  return lines.flatMap((content, index) => {
    const isRow = content.startsWith("|") && !isRule(content) && !isRule(lines[index + 1] ?? "");
    return isRow ? [{ line: index + 1, cells: cellsOf(content) }] : [];
  });
}

const isRule = (content: string) => /^\|[\s|:-]+\|$/.test(content);

const cellsOf = (content: string) =>
  content
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));

interface Reference {
  readonly file: string;
  readonly names: readonly string[];
}

/** "`test/a.test.ts` “a sentence” “another”" */
function referencesOf(cell: string): Reference[] {
  const [, ...pieces] = cell.split(/`((?:test|src|examples)\/[^`]+)`/);
  return pieces.flatMap((file, index) =>
    index % 2 === 0
      ? [{ file, names: [...(pieces[index + 1] ?? "").matchAll(/“([^”]+)”/g)].map(([, name]) => name as string) }]
      : [],
  );
}

/** The names of the tests and groups in a file, as they are written there: with "%s" and "${…}". */
function namesIn(source: string): string[] {
  const opening =
    /(?:\b(?:test|it|describe)(?:\.\w+)*\(|\)\()\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)/g;
  return [...source.matchAll(opening)].map(([, literal = ""]) => literal.slice(1, -1).replace(/\\(.)/g, "$1"));
}

const placeholder = /%[sdiojf]|\$\{[^}]*\}|\$\w+/;

/**
 * Whether the file has a test of this name. For a part that differs from case to case, the page has "…" or one of the
 * cases, which must then also occur in the file.
 */
function hasTest(source: string, name: string): boolean {
  return namesIn(source).some((written) => {
    const fixed = written.split(placeholder);
    if (fixed.length === 1) return written === name;
    if (fixed.join("…") === name) return name !== "…";
    const parts = new RegExp(`^${fixed.map(escaped).join("(.+)")}$`).exec(name);
    return parts?.slice(1).every((part) => source.includes(part)) ?? false;
  });
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

describe("docs/specification.md", () => {
  const rows = rowsOf(page);

  test("has a row for each requirement, and each row names at least one test", () => {
    expect(rows.length).toBeGreaterThan(200);
    const without = rows.filter(({ cells }) => !referencesOf(cells.at(-1) ?? "").some(({ names }) => names.length > 0));
    expect(without.map(({ line, cells }) => `${line}: ${cells[0]}`)).toEqual([]);
  });

  test("names only existing files, each with tests that it contains", () => {
    const missing = rows.flatMap(({ line, cells }) =>
      referencesOf(cells.at(-1) ?? "").flatMap(({ file, names }) => {
        if (!existsSync(join(root, file))) return [`${line}: there is no ${file}`];
        const source = readFileSync(join(root, file), "utf8");
        if (names.length === 0) return [`${line}: no test of ${file} is named`];
        return names.filter((name) => !hasTest(source, name)).map((name) => `${line}: ${file} has no test “${name}”`);
      }),
    );
    expect(missing).toEqual([]);
  });

  test("has the same columns in every row: the requirement, what Pawl has, and the tests", () => {
    expect(rows.filter(({ cells }) => cells.length !== 3).map(({ line }) => line)).toEqual([]);
    expect(rows.filter(({ cells }) => cells.some((cell) => cell === "")).map(({ line }) => line)).toEqual([]);
  });
});

test("a test that was renamed or removed is reported as missing", () => {
  const source = 'test("a run ends", () => {});\ntest.each([["cancel"]])(\n  "%s() leaves at once", () => {});';
  expect(hasTest(source, "a run ends")).toBe(true);
  expect(hasTest(source, "a run ended")).toBe(false);
  expect(hasTest(source, "cancel() leaves at once")).toBe(true);
  expect(hasTest(source, "pause() leaves at once")).toBe(false);
  expect(hasTest(source, "…() leaves at once")).toBe(true);
});

test("a table row is parsed into its cells, files and test names", () => {
  const [row] = rowsOf(
    "| asked | Pawl | held by |\n| --- | --- | --- |\n| a \\| b | c | `test/d.test.ts` “e” “f” `src/g.test.ts` “h” |\n",
  );
  expect(row).toMatchObject({ line: 3, cells: ["a | b", "c", expect.any(String)] });
  expect(referencesOf(row?.cells[2] ?? "")).toEqual([
    { file: "test/d.test.ts", names: ["e", "f"] },
    { file: "src/g.test.ts", names: ["h"] },
  ]);
});
