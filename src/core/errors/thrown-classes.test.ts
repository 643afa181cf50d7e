/** Checks that every error that can reach a user is a PawlError with a stable code. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Files that create built-in JavaScript errors, how many, and why no such error reaches a user. */
const allowed: Readonly<Record<string, readonly [count: number, why: string]>> = {
  "src/core/run/fold-wait.ts": [1, "fold() turns it into a DamagedDataError"],
  "src/core/errors/safe-thrown.ts": [1, "it replaces a value that user code threw and that cannot be inspected"],
  "src/client/inspect/history.ts": [1, "the caller gets a DamagedDataError"],
  "src/core/run/parking-note.ts": [2, "the caller gets a DamagedDataError"],
  "src/client/inspect/result-waiter.ts": [1, "a mark within the file; the caller gets a RunNotFoundError"],
  "src/client/start/start-batcher.ts": [1, "an invariant: no store returns such a result"],
  "src/store/postgres/ports.ts": [1, "never leaves the file: it has a transaction rolled back"],
  "src/store/shared/event-rows.ts": [1, "an invariant: no commit has an empty list of events"],
  "src/store/mysql/starts.ts": [1, "an invariant: only workers commit owned runs"],
  "src/store/postgres/commit/commit.ts": [2, "invariants: only workers commit owned runs"],
  "src/store/postgres/commit/statement.ts": [1, "an invariant: each section of a commit has a letter of its own"],
  "src/store/postgres/connection/listener.ts": [1, "for the log: the listener connects again"],
  "src/store/sqlite/starts.ts": [1, "an invariant: the run that conflicts with a start can be found"],
  "src/http/request-body.ts": [2, "for the log of the server; the client gets a problem without it"],
  "src/worker/replay/resolve-call.ts": [1, "an invariant: only calls with a recorded result are resolved"],
};

const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .map((file) => `src/${file.replaceAll("\\", "/")}`)
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  // The store suite is for authors of stores, and the command line prints its errors itself.
  .filter((file) => !/^src\/(testing\/store-suite|cli)\//.test(file));

test("built-in JavaScript errors are created only where they do not reach a user", () => {
  const created = files.flatMap((file) => {
    const count = readFileSync(join(root, file), "utf8").match(
      /\bnew (?:Type|Range|Syntax|Eval|Reference)?Error\(/g,
    )?.length;
    return count === undefined ? [] : [[file, count] as const];
  });
  expect(Object.fromEntries(created)).toEqual(
    Object.fromEntries(Object.entries(allowed).map(([file, [count]]) => [file, count])),
  );
});
