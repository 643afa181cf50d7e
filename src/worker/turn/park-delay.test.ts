import { describe, expect, onTestFinished, test } from "vitest";
import { fold } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import { systemRuntime } from "../../runtime/system.js";
import { newRun } from "../../testing/store-suite/builders.js";
import { PendingWrites } from "../commit/pending-writes.js";
import { ParkDelay } from "./park-delay.js";

const createLongState = (): RunState => Object.assign(fold([]), { seq: 10_000 });

function open() {
  const parkDelay = new ParkDelay({ host: { runtime: systemRuntime }, scheduleIdleCheck: () => {} });
  onTestFinished(() => parkDelay.stop());
  const pendingWrites = new PendingWrites();
  return { parkDelay, pendingWrites };
}

describe("a long log is not let go of", () => {
  test("while nodes are on their way to others, although the log does not know them yet", () => {
    const { parkDelay, pendingWrites } = open();
    pendingWrites.starts.push(newRun());
    parkDelay.expectMessages();
    expect(parkDelay.shouldDelay(createLongState(), pendingWrites)).toBe(true);
  });

  test("unless nothing is expected", () => {
    const { parkDelay, pendingWrites } = open();
    parkDelay.expectMessages();
    expect(parkDelay.shouldDelay(createLongState(), pendingWrites)).toBe(false);
    pendingWrites.starts.push(newRun());
    expect(open().parkDelay.shouldDelay(createLongState(), pendingWrites)).toBe(false);
  });

  test("and a short one is", () => {
    const { parkDelay, pendingWrites } = open();
    pendingWrites.starts.push(newRun());
    parkDelay.expectMessages();
    expect(parkDelay.shouldDelay(fold([]), pendingWrites)).toBe(false);
  });
});
