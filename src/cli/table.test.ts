import { expect, test } from "vitest";
import { inColour, plain } from "./paint.js";
import { type Cell, type Column, printable, table, truncate } from "./table.js";

const id = "01234567-89ab-7cde-8f01-23456789abcd";
const columns: readonly Column[] = [{ title: "id", whole: true }, { title: "name" }, { title: "ms", align: "right" }];
const rows: readonly (readonly Cell[])[] = [
  [id, "short", "5"],
  [id, "a name that goes on and on", "1,234"],
];
const draw = (width: number, more: { readonly cutWhole?: boolean } = {}) =>
  table(columns, rows, { columns: width, paint: plain, cutWhole: false, ...more });

test("columns are as wide as their content, if there is room", () => {
  expect(draw(100)).toEqual([
    "id                                    name                           ms",
    `${id}  short                           5`,
    `${id}  a name that goes on and on  1,234`,
  ]);
});

test("the widest column that may be truncated shrinks until the table fits", () => {
  const lines = draw(60);
  expect(lines[2]).toBe(`${id}  a name that go…  1,234`);
  expect(Math.max(...lines.map((line) => line.length))).toBe(60);
});

test("ids are truncated on a narrow terminal only", () => {
  expect(draw(30)[1]).toContain(id);
  const onTerminal = draw(30, { cutWhole: true });
  expect(onTerminal[1]).not.toContain(id);
  expect(onTerminal[1]).toContain("…");
  expect(Math.max(...onTerminal.map((line) => line.length))).toBe(30);
});

test("a spare column takes the room that is left, or is dropped", () => {
  const spare = (width: number) =>
    table([{ title: "a" }, { title: "b", spareFrom: 5 }], [["x".repeat(10), "y".repeat(10)]], {
      columns: width,
      paint: plain,
      cutWhole: false,
    })[1];
  expect(spare(22)).toBe("xxxxxxxxxx  yyyyyyyyyy");
  expect(spare(17)).toBe("xxxxxxxxxx  yyyy…");
  expect(spare(16)).toBe("xxxxxxxxxx");
});

test("colours do not count as characters", () => {
  const painted = table([{ title: "" }, { title: "" }], [[{ text: "ok", colour: "green" }, "x"]], {
    columns: 5,
    paint: inColour,
    cutWhole: true,
  });
  expect(painted).toEqual(["\u001b[32mok\u001b[0m  x"]);
});

test("control characters become spaces, and text is not truncated within a character", () => {
  expect(printable("a\u001b[31mb\u0007\nc\u009b")).toBe("a [31mb c ");
  expect(table([{ title: "" }], [["a\u001b[2Jb"]], { columns: 80, paint: plain, cutWhole: false })).toEqual(["a [2Jb"]);
  expect(truncate("😀😀😀", 2)).toBe("😀…");
});
