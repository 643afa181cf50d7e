import { expect, test } from "vitest";
import { frozenVersion, graphRoute, jobWorkflow, routeOf } from "../../core/naming/route.js";
import { servedBy, servedInWords, titleOf } from "./workers.js";

const route = (workflow: string, version = "") => ({ workflow, version });
const ofGraphs = route(graphRoute, frozenVersion);

test("a worker serves workflows and jobs; routes that only claims know are not shown", () => {
  const served = servedBy([
    route("order", "2"),
    route("Onboarding"),
    route(routeOf("Onboarding", "mail")),
    route(routeOf("Onboarding", "q".repeat(250))),
    route(jobWorkflow("Notify")),
    route(jobWorkflow("Double")),
    ofGraphs,
  ]);
  expect(served).toEqual({
    workflows: [
      { name: "Onboarding", version: "" },
      { name: "order", version: "2" },
    ],
    jobs: ["Double", "Notify"],
    graphs: true,
  });
  expect(servedInWords(served)).toBe("Onboarding, order 2; jobs: Double, Notify");
});

test("jobs alone, graphs alone, and a workflow that is called like a job", () => {
  expect(servedInWords(servedBy([route(jobWorkflow("Double")), ofGraphs]))).toBe("jobs: Double");
  expect(servedInWords(servedBy([ofGraphs]))).toBe("graphs");
  expect(servedInWords(servedBy([route("job:of the day")]))).toBe("job:of the day");
});

test("a run is of a workflow, in a version perhaps, or of a graph", () => {
  expect(titleOf("order", "")).toBe("order");
  expect(titleOf("order", "2")).toBe("order 2");
  expect(titleOf("import", frozenVersion)).toBe("graph import");
});
