import { expect, test } from "vitest";
import { faceOf } from "./box-face.js";
import type { GraphNode } from "./structure.js";

const nodesIn = (states: Readonly<Record<string, number>>): GraphNode[] =>
  Object.entries(states).flatMap(([state, count]) =>
    Array.from({ length: count }, (_, index) => ({
      ...{ id: `${state}_${index}`, name: `${state}_${index}`, after: [], state, attempt: 1 },
      ...{ startedAt: null, finishedAt: null, error: null },
    })),
  );

const groupOf = (states: Readonly<Record<string, number>>) => {
  const nodes = nodesIn(states);
  return faceOf({ key: "g", kind: "group", title: "mutation_*", members: nodes.map((_, index) => index) }, nodes);
};

test("a group shows its most frequent state and what failed, and looks like what needs a person", () => {
  expect(groupOf({ completed: 990, failed: 10 })).toMatchObject({
    ...{ state: "failed", detail: "1,000: 990 completed, 10 failed", more: "Press Enter to show them." },
  });
  const { detail, more } = groupOf({ executing: 5_417, pending: 3_400, completed: 1_171, failed: 12 });
  expect(detail).toBe("10,000: 5,417 executing, 12 failed, …");
  expect(more).toContain("In all: 5,417 executing, 3,400 pending, 1,171 completed, 12 failed.");
  expect(groupOf({ pending: 3 }).detail).toBe("3 pending");
});
