import { describe, expect, onTestFinished, test } from "vitest";
import { fold } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import { systemRuntime } from "../../runtime/system.js";
import { newRun } from "../../testing/store-suite/builders.js";
import { Outbox } from "../commit/pending-writes.js";
import { Linger } from "./park-delay.js";

const long = (): RunState => Object.assign(fold([]), { seq: 10_000 });

function open() {
  const linger = new Linger({ host: { runtime: systemRuntime }, stir: () => {} });
  onTestFinished(() => linger.stop());
  const outbox = new Outbox();
  return { linger, outbox };
}

describe("a long log is not let go of", () => {
  test("while nodes are on their way to others, although the log does not know them yet", () => {
    const { linger, outbox } = open();
    outbox.starts.push(newRun());
    linger.expect();
    expect(linger.isWorthIt(long(), outbox)).toBe(true);
  });

  test("unless nothing is expected", () => {
    const { linger, outbox } = open();
    linger.expect();
    expect(linger.isWorthIt(long(), outbox)).toBe(false);
    outbox.starts.push(newRun());
    expect(open().linger.isWorthIt(long(), outbox)).toBe(false);
  });

  test("and a short one is", () => {
    const { linger, outbox } = open();
    outbox.starts.push(newRun());
    linger.expect();
    expect(linger.isWorthIt(fold([]), outbox)).toBe(false);
  });
});
