import { appendFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import { FileWatch } from "./file-watch.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-watch-"));
let watch: FileWatch | undefined;
afterEach(() => watch?.stop());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function startWatching(file: string) {
  const observed = { changed: false, changes: 0 };
  watch = new FileWatch({
    runtime: systemRuntime,
    file,
    hasChanged: () => {
      const { changed } = observed;
      observed.changed = false;
      return changed;
    },
    onChange: () => {
      observed.changes += 1;
    },
    onWarning: (error) => {
      throw error;
    },
  });
  return observed;
}

test("a write with a commit of another connection is reported, a write without one is not", async () => {
  const file = join(folder, "plain");
  writeFileSync(file, "");
  const observed = startWatching(file);
  appendFileSync(file, "own");
  await new Promise((tick) => setTimeout(tick, 300));
  expect(observed.changes).toBe(0);
  observed.changed = true;
  appendFileSync(file, "other");
  await vi.waitFor(() => expect(observed.changes).toBe(1));
});

test("a commit that becomes visible only some time after the write is reported", async () => {
  const file = join(folder, "slow");
  writeFileSync(file, "");
  const observed = startWatching(file);
  appendFileSync(file, "other");
  await new Promise((tick) => setTimeout(tick, 60));
  observed.changed = true;
  await vi.waitFor(() => expect(observed.changes).toBe(1));
});

test("a file that is created late, truncated or replaced is still watched", async () => {
  const file = join(folder, "late");
  const observed = startWatching(file);
  writeFileSync(file, "first");
  await vi.waitFor(() => expect(observed.changes).toBeGreaterThan(0));
  const expectReported = async () => {
    const before = observed.changes;
    observed.changed = true;
    appendFileSync(file, "more");
    await vi.waitFor(() => expect(observed.changes).toBeGreaterThan(before));
  };
  await new Promise((tick) => setTimeout(tick, 100));
  await expectReported();
  truncateSync(file);
  await expectReported();
  for (let round = 0; round < 3; round += 1) {
    const before = observed.changes;
    writeFileSync(`${file}.new`, "new");
    renameSync(`${file}.new`, file);
    // A write before the new watch may have been missed, so a change is reported.
    await vi.waitFor(() => expect(observed.changes).toBeGreaterThan(before));
    await new Promise((tick) => setTimeout(tick, 100));
    await expectReported();
  }
});
