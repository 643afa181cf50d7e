import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { type ChunkResult, Progress } from "./progress.js";

const id = { from: 1, seeds: 300, rates: {}, code: "abc" };
const chunkOf = (chunk: number): ChunkResult => ({ chunk, seeds: 100, events: 5, failing: [], coverage: { a: 1 } });
let file: string;

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-progress-"));
  file = join(folder, "of/campaign.jsonl");
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

test("a campaign goes on with the chunks that are in its file", () => {
  const first = new Progress(file, id);
  first.add(chunkOf(1));
  first.add(chunkOf(0));
  const second = new Progress(file, id);
  expect(second.chunks.map(({ chunk }) => chunk)).toEqual([1, 0]);
  expect([second.has(0), second.has(2), second.seeds]).toEqual([true, false, 200]);
  expect(second.seconds).toBeGreaterThan(first.seconds - 1);
});

test("a line that a killed process has not written to its end is left out, and the next line is whole", () => {
  const killed = new Progress(file, id);
  killed.add(chunkOf(0));
  appendFileSync(file, JSON.stringify(chunkOf(1)).slice(0, -7));
  new Progress(file, id).add(chunkOf(2));
  expect(new Progress(file, id).chunks.map(({ chunk }) => chunk)).toEqual([0, 2]);
});

test.each([
  ["other code", { ...id, code: "other" }],
  ["other seeds", { ...id, from: 2 }],
  ["other faults", { ...id, rates: { slow: 0.1 } }],
])("a campaign of %s begins anew", (_, other) => {
  new Progress(file, id).add(chunkOf(0));
  expect(new Progress(file, other).chunks).toEqual([]);
  expect(readFileSync(file, "utf8")).toBe(`${JSON.stringify(other)}\n`);
});

test("a campaign that is forgotten begins anew", () => {
  const progress = new Progress(file, id);
  progress.add(chunkOf(0));
  progress.forget();
  expect(new Progress(file, id).chunks).toEqual([]);
});
