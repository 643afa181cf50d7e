import { expect, test } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import { StalledCodeDetector } from "./stalled-code-detector.js";

const turn = (isStalled: boolean, seq = 1) =>
  ({ runId: "r1", run: { workflow: "w" }, isStalled, state: { seq } }) as never;

function createDetector(...turns: object[]) {
  const warnings: string[] = [];
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: (text: unknown) => void warnings.push(String(text)), error: quiet };
  return { warnings, detector: new StalledCodeDetector(log, () => turns as never, systemRuntime) };
}

test("warns once of code that has recorded nothing between two checks", () => {
  const { warnings, detector } = createDetector(turn(true), turn(false));
  detector.check();
  expect(warnings).toEqual([]);
  detector.check();
  detector.check();
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain("Run r1 (w) has recorded nothing");
});

test("does not warn of code that has recorded something between two checks", () => {
  const moving = { runId: "r1", run: { workflow: "w" }, isStalled: true, state: { seq: 1 } };
  const { warnings, detector } = createDetector(moving);
  detector.check();
  moving.state.seq = 2;
  detector.check();
  expect(warnings).toEqual([]);
});
