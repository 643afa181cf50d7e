/** Every error that can reach a user is a PawlError with a stable code. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Files that make errors of JavaScript's own, how many, and why no user meets them as they are. */
const allowed: Readonly<Record<string, readonly [count: number, why: string]>> = {
  "src/core/run/fold-wait.ts": [1, "fold tells it as a DamagedDataError"],
  "src/core/errors/safe-thrown.ts": [1, "in place of something that user code threw and that cannot be looked at"],
  "src/client/inspect/history.ts": [1, "told as a DamagedDataError"],
  "src/core/run/parking-note.ts": [2, "told as a DamagedDataError"],
  "src/client/inspect/result-waiter.ts": [1, "a mark within the file; the caller gets a RunNotFoundError"],
  "src/client/start/start-batcher.ts": [1, "an invariant: no store answers so"],
  "src/store/shared/event-rows.ts": [1, "an invariant: no commit has an empty list of events"],
  "src/store/mysql/starts.ts": [1, "an invariant: only workers commit owned runs"],
  "src/store/postgres/commit/commit.ts": [2, "invariants: only workers commit owned runs"],
  "src/store/postgres/connection/listener.ts": [1, "for the log: the listener connects again"],
  "src/store/sqlite/starts.ts": [1, "an invariant: what refuses a start can be found"],
  "src/worker/replay/resolve-call.ts": [1, "an invariant: only what has an answer is settled"],
};

const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .map((file) => `src/${file.replaceAll("\\", "/")}`)
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  // A suite for those who write a store, and programs with words of their own.
  .filter((file) => !/^src\/(testing\/store-suite|cli)\//.test(file));

test("errors of JavaScript's own are made only where no user meets them", () => {
  const made = files.flatMap((file) => {
    const count = readFileSync(join(root, file), "utf8").match(
      /\bnew (?:Type|Range|Syntax|Eval|Reference)?Error\(/g,
    )?.length;
    return count === undefined ? [] : [[file, count] as const];
  });
  expect(Object.fromEntries(made)).toEqual(
    Object.fromEntries(Object.entries(allowed).map(([file, [count]]) => [file, count])),
  );
});
