import { expect, test } from "vitest";
import { nodesAsMermaid } from "./mermaid.js";

test("every node is drawn with its state as its class, and nodes that have not started are dashed", () => {
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

test("a run without nodes gives an empty flowchart", () => {
  expect(nodesAsMermaid([])).toBe("flowchart TD\n");
});
