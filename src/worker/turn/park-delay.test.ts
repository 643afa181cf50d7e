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

describe("parking a run with a long log", () => {
  test("is delayed while started nodes are not in the log yet", () => {
    const { parkDelay, pendingWrites } = open();
    pendingWrites.starts.push(newRun());
    parkDelay.expectMessages();
    expect(parkDelay.shouldDelay(createLongState(), pendingWrites)).toBe(true);
  });

  test("is not delayed when no messages are expected", () => {
    const { parkDelay, pendingWrites } = open();
    parkDelay.expectMessages();
    expect(parkDelay.shouldDelay(createLongState(), pendingWrites)).toBe(false);
    pendingWrites.starts.push(newRun());
    expect(open().parkDelay.shouldDelay(createLongState(), pendingWrites)).toBe(false);
  });

  test("is delayed, but parking a run with a short log is not", () => {
    const { parkDelay, pendingWrites } = open();
    pendingWrites.starts.push(newRun());
    parkDelay.expectMessages();
    expect(parkDelay.shouldDelay(fold([]), pendingWrites)).toBe(false);
  });
});
