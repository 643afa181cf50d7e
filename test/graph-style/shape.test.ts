/** The structure of a graph is validated before anything runs, and can be drawn. */
import { branch, GraphError, graph, type StepContext, step } from "pawl";
import { describe, expect, test } from "vitest";

const named = <const Name extends string>(name: Name) => step(name, () => name);
const [a, b, c, d] = [named("a"), named("b"), named("c"), named("d")];

/** Returns the GraphError that the call throws. */
function refused(make: () => unknown): GraphError {
  try {
    make();
  } catch (error) {
    expect(error).toBeInstanceOf(GraphError);
    return error as GraphError;
  }
  throw new Error("It was not refused.");
}

describe("a graph is refused, with the names of the invalid steps,", () => {
  test("when a step comes after one that is not in it", () => {
    const error = refused(() => graph("g", [b.after(a)]));
    expect(error.message).toBe('Step "b" of graph "g" depends on "a", which is not in the graph; add it to the list.');
    expect(error).toMatchObject({ code: "GRAPH_ERROR", workflow: "g", nodes: ["b", "a"] });
  });

  test("when two steps have the same name, even within branches", () => {
    expect(refused(() => graph("g", [a, step("a", () => 2)])).message).toContain('two steps called "a"');
    const twice = branch("choice", () => "left" as const, { left: [a], right: [step("a", () => 3)] });
    expect(refused(() => graph("g", [twice])).message).toContain('two steps called "a"');
  });

  test("when a step comes after another one of the same name", () => {
    expect(refused(() => graph("g", [a, b.after(step("a", () => 9))])).message).toContain("another");
  });

  test("when it has a cycle, which is shown as a path", () => {
    const first = a.after(c);
    const error = refused(() => graph("g", [d, first, b.after(first, d), c.after(b)]));
    expect(error.message).toBe('The dependencies of graph "g" form a cycle: a → b → c → a. Remove one of them.');
    expect(error.nodes).toEqual(["a", "b", "c", "a"]);
    expect(refused(() => graph("g", [a.after(a)])).message).toContain("a → a");
  });

  test("when it has no steps, or an element that is not a step", () => {
    refused(() => graph("g", []));
    refused(() => graph("g", [a, "b" as never]));
    refused(() => graph("g", null as never));
  });

  test("when a limit is invalid", () => {
    for (const concurrency of [0, -1, 1.5, Number.NaN])
      expect(() => graph("g", [a], { concurrency })).toThrow(/concurrency/);
    expect(() => graph("g", [a], { unknown: 1 } as never)).toThrow(/unknown/);
    expect(() => step("a", () => 1, { unknown: 1 } as never)).toThrow(/unknown/);
    expect(() => step("a/b", () => 1)).toThrow(/"\/"/);
    expect(() => branch("b", () => "x" as never, {})).toThrow(/case/);
  });
});

describe("a graph shows its shape", () => {
  const review = step("review", () => "reviewed");
  const approve = step("approve", () => "approved");
  const order = graph("order", [
    a,
    b.after(a),
    c.after(a),
    branch("route", (ctx: StepContext<any>) => (ctx.output(b) === "b" ? "review" : "auto"), {
      review: [review],
      auto: [approve],
    }).after(b),
    d.after(b, c, review, approve),
  ]);

  test("as a picture", () => {
    expect(order.toMermaid()).toBe(`flowchart TD
  n1["a"]
  n2["b"]
  n3["c"]
  n4{"route"}
  n5["review"]
  n6["approve"]
  n7["d"]
  n1 --> n2
  n1 --> n3
  n2 --> n4
  n4 -->|review| n5
  n4 -->|auto| n6
  n2 --> n7
  n3 --> n7
  n5 --> n7
  n6 --> n7
`);
    expect(graph("odd", [step('say "hi" <b>', () => 1)]).toMermaid()).toContain('n1["say #34;hi#34; #60;b#62;"]');
  });

  test("as data, in an order in which it can run", () => {
    expect(order.toJSON()).toEqual({
      name: "order",
      signature: order.signature,
      nodes: [
        { name: "a", kind: "step", after: [] },
        { name: "b", kind: "step", after: ["a"] },
        { name: "c", kind: "step", after: ["a"] },
        { name: "route", kind: "branch", after: ["b"] },
        { name: "review", kind: "step", after: ["route"], case: { branch: "route", label: "review" } },
        {
          name: "approve",
          kind: "step",
          after: ["route"],
          case: { branch: "route", label: "auto" },
        },
        { name: "d", kind: "step", after: ["b", "c", "review", "approve"] },
      ],
    });
    expect(JSON.parse(JSON.stringify(order))).toEqual(order.toJSON());
  });

  test("as a signature that changes with it, and only with it", () => {
    const signature = graph("g", [a, b.after(a), c.after(a)]).signature;
    expect(signature).toMatch(/^[0-9a-f]{16}$/);
    expect(graph("other", [c.after(a), b.after(a), a]).signature).toBe(signature);
    expect(graph("g", [a, b.after(a), c.after(b)]).signature).not.toBe(signature);
    expect(graph("g", [a, b.after(a)]).signature).not.toBe(signature);
  });
});
