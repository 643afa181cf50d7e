import { expect, test } from "vitest";
import { Workflow } from "./class/workflow.js";
import { job } from "./dynamic/job.js";
import { signal, workflow } from "./function/function.js";
import { graph } from "./graph/graph.js";
import { step } from "./graph/node.js";
import { asDefinitions, discoverWorkflows } from "./resolve.js";
import { discoverSchedules, schedule } from "./schedule/schedule.js";

const order = workflow("order", async () => 1);
const resize = job("Resize", async () => 1);
const look = step("look", async () => 1);
const album = graph("album", [look]);
class Onboarding extends Workflow {
  static {
    this.step("welcome", () => {});
  }
}
class Unrelated {}
const helper = () => 1;

test.each([
  ["a signal", signal("shipped"), 'the signal "shipped"'],
  ["a node of a graph", look, 'the step "look"'],
  ["a function", helper, "the function helper"],
  ["an unrelated class", Unrelated, "the class Unrelated"],
  ["an object with a name", { name: "settings" }, 'an object called "settings"'],
  ["a text", "order", 'the text "order"'],
  ["a list", [order], "a list"],
  ["an undefined export", undefined, "undefined"],
  ["null", null, "null"],
  ["an object without a prototype", Object.create(null), "an object"],
])("asDefinitions refuses %s and names its index and its kind", (_what, wrong, description) => {
  expect(() => asDefinitions([order, Onboarding, wrong])).toThrow(
    expect.objectContaining({
      code: "INVALID_INPUT",
      message: expect.stringContaining(`workflows[2] is not a workflow but ${description}. `),
    }),
  );
});

test("discoverWorkflows takes functions, classes, graphs and jobs, and ignores all other exports", () => {
  const module = { order, resize, look, album, Onboarding, Unrelated, helper, shipped: signal("shipped"), none: null };
  const names = discoverWorkflows(module).map(({ name }) => name);
  expect(names).toEqual(["order", "job:Resize", "album", "Onboarding"]);
});

test("discoverSchedules takes schedules, also those in lists, each once, and ignores all other exports", () => {
  const nightly = schedule("nightly", { workflow: order, cron: "30 2 * * *" });
  const hourly = schedule("hourly", { workflow: "report", every: "1h" });
  const module = { order, nightly, again: nightly, all: [hourly, nightly], helper, none: null, text: "schedule" };
  expect(discoverSchedules(module).map(({ name }) => name)).toEqual(["nightly", "hourly"]);
  expect(discoverWorkflows(module).map(({ name }) => name)).toEqual(["order"]);
});
