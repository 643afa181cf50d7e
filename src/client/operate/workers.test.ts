import { expect, test } from "vitest";
import { frozenDagVersion, graphRoute, jobWorkflow, routeOf } from "../../core/naming/route.js";
import { capabilitiesOf, describeCapabilities, titleOf } from "./workers.js";

const route = (workflow: string, version = "") => ({ workflow, version });
const routeOfGraphs = route(graphRoute, frozenDagVersion);

test("a worker's capabilities are its workflows and jobs, without the internal routes of claims", () => {
  const capabilities = capabilitiesOf([
    route("order", "2"),
    route("Onboarding"),
    route(routeOf("Onboarding", "mail")),
    route(routeOf("Onboarding", "q".repeat(250))),
    route(jobWorkflow("Notify")),
    route(jobWorkflow("Double")),
    routeOfGraphs,
  ]);
  expect(capabilities).toEqual({
    workflows: [
      { name: "Onboarding", version: "" },
      { name: "order", version: "2" },
    ],
    jobs: ["Double", "Notify"],
    graphs: true,
  });
  expect(describeCapabilities(capabilities)).toBe("Onboarding, order 2; jobs: Double, Notify");
});

test("a worker with jobs only, with graphs only, or with a workflow named like a job is described", () => {
  expect(describeCapabilities(capabilitiesOf([route(jobWorkflow("Double")), routeOfGraphs]))).toBe("jobs: Double");
  expect(describeCapabilities(capabilitiesOf([routeOfGraphs]))).toBe("graphs");
  expect(describeCapabilities(capabilitiesOf([route("job:of the day")]))).toBe("job:of the day");
});

test("the title of a run is its workflow, its workflow and version, or its graph", () => {
  expect(titleOf("order", "")).toBe("order");
  expect(titleOf("order", "2")).toBe("order 2");
  expect(titleOf("import", frozenDagVersion)).toBe("graph import");
});
