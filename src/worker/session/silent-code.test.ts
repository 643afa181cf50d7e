import { expect, test } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import { SilentCode } from "./silent-code.js";

const turn = (isSilent: boolean, seq = 1) =>
  ({ runId: "r1", run: { workflow: "w" }, isSilent, state: { seq } }) as never;

function watching(...turns: object[]) {
  const warnings: string[] = [];
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: (text: unknown) => void warnings.push(String(text)), error: quiet };
  return { warnings, silent: new SilentCode(log, () => turns as never, systemRuntime) };
}

test("code that is silent at two looks in a row is told of once", () => {
  const { warnings, silent } = watching(turn(true), turn(false));
  silent.look();
  expect(warnings).toEqual([]);
  silent.look();
  silent.look();
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain("Run r1 (w) has recorded nothing");
});

test("code that has recorded something in between is not told of", () => {
  const moving = { runId: "r1", run: { workflow: "w" }, isSilent: true, state: { seq: 1 } };
  const { warnings, silent } = watching(moving);
  silent.look();
  moving.state.seq = 2;
  silent.look();
  expect(warnings).toEqual([]);
});
