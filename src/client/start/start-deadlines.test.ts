import { expect, test } from "vitest";
import type { StartDeadline, Store } from "../../store/contract/store.js";
import type { RunCommands } from "../command/run-commands.js";
import { OverdueStarts } from "./start-deadlines.js";

test("a run that cannot be canceled does not keep those with later deadlines from being canceled", async () => {
  let rows: readonly StartDeadline[] = Array.from({ length: 120 }, (_, n) => ({ runId: `run-${n}`, at: n }));
  const startDeadlines = {
    earliest: async (limit: number) => ({ now: 1_000, deadlines: rows.slice(0, limit) }),
    remove: async (done: readonly StartDeadline[]) => {
      rows = rows.filter((row) => !done.includes(row));
    },
  };
  const canceled: string[] = [];
  const send = async (runId: string) => {
    if (runId === "run-3") throw new Error("Its log is damaged.");
    canceled.push(runId);
  };
  const store = { maintenance: { startDeadlines } } as unknown as Store;
  const overdue = new OverdueStarts(store, { send } as unknown as RunCommands);
  for (let looks = 0; looks < 3; looks += 1) await expect(overdue.cancelDue()).rejects.toThrow("damaged");
  expect(canceled).toHaveLength(119);
  expect(rows.map(({ runId }) => runId)).toEqual(["run-3"]);
});
