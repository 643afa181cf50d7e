/** A worker is killed with SIGKILL while it compensates a run, and another worker continues the compensation. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { expireLeaseOf } from "../support/expired-leases.js";
import { killAllProcesses } from "../support/library-process.js";
import { until } from "../support/waiting.js";
import { ResumableProcess } from "./resumable-process.js";

const names = ["flight", "hotel", "car", "theatre", "dinner"];

forEachStore(
  (kind) => {
    test("each step is undone in reverse order, and each compensation is recorded once, although the worker is killed", {
      timeout: 300_000,
    }, async () => {
      const database = await testDatabase(kind);
      const folder = mkdtempSync(join(tmpdir(), "pawl-saga-"));
      const ledger = join(folder, "ledger");
      writeFileSync(ledger, "");
      const pawl = await connect(database.url);
      onTestFinished(async () => {
        await killAllProcesses();
        await pawl.close();
        await database.drop();
        rmSync(folder, { recursive: true });
      });
      const lines = () => readFileSync(ledger, "utf8").split("\n").filter(Boolean);
      const newWorker = async () => {
        const worker = new ResumableProcess({ url: database.url, ledger, lease: 60_000 }, "saga-worker");
        await worker.ready;
        return worker;
      };
      let worker = await newWorker();
      const run = await pawl.workflow<void>("trip").trigger();
      for (const killedAt of ["undo theatre-1", "undo hotel-1"]) {
        await until(() => lines().includes(killedAt));
        await worker.kill();
        await expireLeaseOf(worker.pid, kind, database.url);
        worker = await newWorker();
      }
      await expect(run.result({ timeout: "100s" })).rejects.toThrow("declined");
      await worker.terminate();

      const undone = lines().filter((line) => line.startsWith("undo"));
      expect([...new Set(undone)]).toEqual([...names].reverse().map((name) => `undo ${name}-1`));
      expect(undone.length - names.length).toBeLessThanOrEqual(2);
      const recorded = (await run.history()).filter(
        ({ type, node }) => type === "step.completed" && node?.includes("#"),
      );
      expect(recorded.map(({ node }) => node)).toEqual([...names].reverse().map((name) => `${name}#compensate`));
      expect(await pawl.verify()).toMatchObject({ differences: [] });
      expect(worker.output).toBe("");
    });
  },
  ["sqlite", "postgres"],
);
