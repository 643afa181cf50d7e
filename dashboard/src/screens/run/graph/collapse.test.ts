import { describe, expect, test } from "vitest";
import { chooseBoxes, maxDrawn } from "./collapse.js";
import { layOut } from "./layout.js";
import { type GraphNode, isSameStructure, structureOf, topology } from "./structure.js";

const node = (name: string, after: readonly string[] = []): GraphNode => ({
  ...{ id: name, name, after, state: "pending", attempt: 0, startedAt: null, finishedAt: null, error: null },
});

const numbered = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}_${index}`);

const fanOut = (count: number) => {
  const names = numbered("mutation", count);
  return structureOf([node("load"), ...names.map((name) => node(name, ["load"])), node("sum", names)]);
};

const grouped = { isGrouped: true, expanded: [], windowStart: 0 };

describe("which boxes are drawn", () => {
  test("siblings whose names differ in digits become one", () => {
    const { boxes, edges } = chooseBoxes(fanOut(1_000), grouped);
    expect(boxes.map(({ kind, title, members }) => [kind, title, members.length])).toEqual([
      ["node", "load", 1],
      ["group", "mutation_*", 1_000],
      ["node", "sum", 1],
    ]);
    expect(edges).toEqual([
      [0, 1],
      [1, 2],
    ]);
  });

  test("an expanded group shows some members, the wanted ones first, and one box for the others", () => {
    const { boxes } = chooseBoxes(fanOut(1_000), {
      ...grouped,
      expanded: [{ key: "group 1", first: [900], count: 100 }],
    });
    expect(boxes.length).toBe(103);
    expect(boxes[1]?.title).toBe("mutation_899");
    expect(boxes[101]).toMatchObject({ kind: "rest", title: "mutation_*, the others" });
    expect(boxes[101]?.members.length).toBe(900);
  });

  test("there are never more than 300, however many members a group is to show", () => {
    const expanded = [{ key: "group 1", first: [], count: 5_000 }];
    expect(chooseBoxes(fanOut(10_000), { ...grouped, expanded }).boxes.length).toBeLessThanOrEqual(maxDrawn);
  });

  test("parallel chains are grouped by their steps", () => {
    const names = numbered("fetch", 2_000);
    const structure = structureOf([
      node("load"),
      ...names.flatMap((name, index) => [node(name, ["load"]), node(`store_${index}`, [name])]),
    ]);
    const { boxes, edges } = chooseBoxes(structure, grouped);
    expect(boxes.map(({ title }) => title)).toEqual(["load", "fetch_*", "store_*"]);
    expect(edges.length).toBe(2);
  });

  test("a long chain is drawn in a window, with what is before and after it", () => {
    const names = numbered("part", 1_000);
    const structure = structureOf(
      names.map((name, index) => node(name, index === 0 ? [] : [names[index - 1] as string])),
    );
    const { boxes, edges } = chooseBoxes(structure, { ...grouped, windowStart: 150 });
    expect(boxes.length).toBe(maxDrawn);
    expect(boxes[0]).toMatchObject({ kind: "earlier" });
    expect(boxes[1]?.title).toBe("part_150");
    expect(boxes.at(-1)?.members.length).toBe(1_000 - 150 - 298);
    expect(edges.length).toBe(maxDrawn - 1);
  });
});

describe("the structure", () => {
  test("is the same for other states, and another for other predecessors", () => {
    expect(
      isSameStructure(structureOf([node("a"), node("b", ["a"])]), structureOf([node("a"), node("b", ["a"])])),
    ).toBe(true);
    expect(isSameStructure(structureOf([node("a"), node("b", ["a"])]), structureOf([node("a"), node("b")]))).toBe(
      false,
    );
  });

  test("has a topological order, and depths by the longest path", () => {
    const structure = structureOf([node("c", ["a", "b"]), node("b", ["a"]), node("a")]);
    expect(topology(structure)).toEqual({ order: [2, 1, 0], depth: [2, 1, 0] });
  });
});

test("a layout places every box, and siblings in their order", () => {
  const { boxes, edges } = layOut({ ...grouped, isGrouped: false, structure: fanOut(5), width: 1_000, height: 600 });
  const siblings = boxes.slice(1, 6);
  const places = siblings.map(({ x, y }) => x + y);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(edges.length).toBe(10);
  for (const { to, points } of edges) {
    const box = boxes[to] as (typeof boxes)[number];
    const end = points.at(-1) as { readonly x: number; readonly y: number };
    expect(end.x).toBeGreaterThanOrEqual(box.x - 1);
    expect(end.x).toBeLessThanOrEqual(box.x + box.width + 1);
  }
});
