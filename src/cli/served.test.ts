import { expect, test } from "vitest";
import { frozenVersion, graphRoute, jobWorkflow, routeOf } from "../core/route.js";
import { inWords, nameOf, servedBy } from "./served.js";

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
    workflows: [route("Onboarding"), route("order", "2")],
    jobs: ["Double", "Notify"],
    graphs: true,
  });
  expect(inWords(served)).toBe("Onboarding, order 2; jobs: Double, Notify");
});

test("jobs alone, graphs alone, and a workflow that is called like a job", () => {
  expect(inWords(servedBy([route(jobWorkflow("Double")), ofGraphs]))).toBe("jobs: Double");
  expect(inWords(servedBy([ofGraphs]))).toBe("graphs");
  expect(inWords(servedBy([route("job:of the day")]))).toBe("job:of the day");
});

test("a run is of a workflow, in a version perhaps, or of a graph", () => {
  expect(nameOf("order", "")).toBe("order");
  expect(nameOf("order", "2")).toBe("order 2");
  expect(nameOf("import", frozenVersion)).toBe("graph import");
});
