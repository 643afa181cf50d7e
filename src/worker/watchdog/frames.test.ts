import { expect, test } from "vitest";
import { Frames } from "./frames.js";

/** The top frame as another thread reads it from the shared memory. */
const seenFrom = (frames: Frames) => new Frames(frames.memory).top();

test("another thread sees the innermost frame until it is left", () => {
  const frames = new Frames();
  expect(seenFrom(frames)).toBeNull();
  frames.enter(0, "run-1", "");
  expect(seenFrom(frames)).toEqual({ worker: 0, runId: "run-1", step: "" });
  frames.enter(1, "run-2", "bezahlen für 🦊");
  expect(seenFrom(frames)).toEqual({ worker: 1, runId: "run-2", step: "bezahlen für 🦊" });
  frames.leave();
  expect(seenFrom(frames)).toEqual({ worker: 0, runId: "run-1", step: "" });
  frames.leave();
  expect(seenFrom(frames)).toBeNull();
});

test("shorter names overwrite longer ones completely, and known names are found again", () => {
  const frames = new Frames();
  for (const [run, key] of [
    ["a-long-run", "a long step"],
    ["b", "c"],
    ["b", "d"],
    ["e", "d"],
  ] as const) {
    frames.enter(0, run, key);
    expect(seenFrom(frames)).toEqual({ worker: 0, runId: run, step: key });
    frames.leave();
  }
});

test("runs and steps are named even if there are more of them than the table holds", () => {
  const frames = new Frames();
  for (let number = 0; number < 10_000; number += 1) {
    frames.enter(0, `run-${number}`, `step-${number}`);
    if (number % 997 === 0) expect(seenFrom(frames)).toMatchObject({ runId: `run-${number}`, step: `step-${number}` });
    frames.leave();
  }
});

test("frames beyond the maximum depth are counted, and names beyond the maximum length are cut", () => {
  const frames = new Frames();
  for (let depth = 0; depth < 20; depth += 1) frames.enter(0, `run-${depth}`, "x".repeat(1_000));
  expect(seenFrom(frames)).toMatchObject({ runId: "run-7", step: expect.stringMatching(/^x+$/) });
  for (let depth = 0; depth < 19; depth += 1) frames.leave();
  expect(seenFrom(frames)).toMatchObject({ runId: "run-0" });
  frames.leave();
  expect(seenFrom(frames)).toBeNull();
});

test("the suspect run is reported while no frame is entered", () => {
  const frames = new Frames();
  frames.markSuspect(0, "run-1");
  expect(seenFrom(frames)).toEqual({ worker: 0, runId: "run-1", step: "" });
  frames.enter(0, "run-2", "work");
  expect(seenFrom(frames)).toMatchObject({ runId: "run-2" });
  frames.leave();
  frames.clearSuspect();
  expect(seenFrom(frames)).toBeNull();
});
