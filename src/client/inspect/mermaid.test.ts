import { expect, test } from "vitest";
import { nodesAsMermaid } from "./mermaid.js";

test("every node is drawn, in the class of its state, and what has not begun is dashed", () => {
  const picture = nodesAsMermaid([
    { name: "validate", kind: "step", state: "completed", after: [] },
    { name: "route", kind: "branch", state: "executing", after: ["validate"] },
    { name: 'say "hi"', kind: "job", state: "pending", after: ["route", "gone"] },
  ]);
  expect(picture).toBe(`flowchart TD
  n1["validate"]:::completed
  n2{"route"}:::executing
  n3["say #34;hi#34;"]:::pending
  n1 --> n2
  n2 --> n3
  classDef completed stroke:#16a34a,stroke-width:2px
  classDef executing stroke:#2563eb,stroke-width:3px
  classDef pending stroke-dasharray:4 4
`);
});

test("a run of which nothing is known is an empty picture", () => {
  expect(nodesAsMermaid([])).toBe("flowchart TD\n");
});
