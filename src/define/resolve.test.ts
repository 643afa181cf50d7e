import { expect, test } from "vitest";
import { Workflow } from "./class/workflow.js";
import { job } from "./dynamic/job.js";
import { signal, workflow } from "./function/function.js";
import { graph } from "./graph/graph.js";
import { step } from "./graph/node.js";
import { asDefinitions, discoverWorkflows } from "./resolve.js";

const order = workflow("order", async () => 1);
const resize = job("Resize", async () => 1);
const look = step("look", async () => 1);
const album = graph("album", [look]);
class Onboarding extends Workflow {
  static {
    this.step("welcome", () => {});
  }
}
class Stranger {}
const helper = () => 1;

test.each([
  ["the signal", signal("shipped"), 'the signal "shipped"'],
  ["a node of a graph", look, 'the step "look"'],
  ["a function", helper, "the function helper"],
  ["a class of another kind", Stranger, "the class Stranger"],
  ["something with a name", { name: "settings" }, 'an object called "settings"'],
  ["a text", "order", 'the text "order"'],
  ["a list", [order], "a list"],
  ["an export that is not there yet", undefined, "undefined"],
  ["null", null, "null"],
  ["an object without a prototype", Object.create(null), "an object"],
])("among workflows, %s is refused by its place and by what it is", (_what, wrong, told) => {
  expect(() => asDefinitions([order, Onboarding, wrong])).toThrow(
    expect.objectContaining({
      code: "INVALID_INPUT",
      message: expect.stringContaining(`workflows[2] is not a workflow but ${told}. `),
    }),
  );
});

test("what a module exports is told apart: workflows, classes, graphs and jobs are taken, the rest is passed over", () => {
  const module = { order, resize, look, album, Onboarding, Stranger, helper, shipped: signal("shipped"), none: null };
  const names = discoverWorkflows(module).map(({ name }) => name);
  expect(names).toEqual(["order", "job:Resize", "album", "Onboarding"]);
});
