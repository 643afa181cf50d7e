import { expect, test } from "vitest";
import { frozenDagVersion, graphRoute, jobWorkflow, routeOf } from "../../core/naming/route.js";
import { capabilitiesOf, describeCapabilities, titleOf } from "./workers.js";

const route = (workflow: string, version = "") => ({ workflow, version });
const routeOfGraphs = route(graphRoute, frozenDagVersion);

test("a worker serves workflows and jobs; routes that only claims know are not shown", () => {
  const served = capabilitiesOf([
    route("order", "2"),
    route("Onboarding"),
    route(routeOf("Onboarding", "mail")),
    route(routeOf("Onboarding", "q".repeat(250))),
    route(jobWorkflow("Notify")),
    route(jobWorkflow("Double")),
    routeOfGraphs,
  ]);
  expect(served).toEqual({
    workflows: [
      { name: "Onboarding", version: "" },
      { name: "order", version: "2" },
    ],
    jobs: ["Double", "Notify"],
    graphs: true,
  });
  expect(describeCapabilities(served)).toBe("Onboarding, order 2; jobs: Double, Notify");
});

test("jobs alone, graphs alone, and a workflow that is called like a job", () => {
  expect(describeCapabilities(capabilitiesOf([route(jobWorkflow("Double")), routeOfGraphs]))).toBe("jobs: Double");
  expect(describeCapabilities(capabilitiesOf([routeOfGraphs]))).toBe("graphs");
  expect(describeCapabilities(capabilitiesOf([route("job:of the day")]))).toBe("job:of the day");
});

test("a run is of a workflow, in a version perhaps, or of a graph", () => {
  expect(titleOf("order", "")).toBe("order");
  expect(titleOf("order", "2")).toBe("order 2");
  expect(titleOf("import", frozenDagVersion)).toBe("graph import");
});
