/** The same commands on a database server, which has its own clock, schema and password. */

import { hostname } from "node:os";
import { expect, onTestFinished, test } from "vitest";
import { emptyDatabase, forEachStore } from "../support/databases.js";
import { until } from "../support/waiting.js";
import { newFolder, workflows } from "./command-line.js";

forEachStore(
  (kind) => {
    /** A folder whose commands use a new database of this server. */
    const onServer = async () => {
      const database = await emptyDatabase(kind);
      const folder = newFolder();
      onTestFinished(() => database.drop());
      folder.write("pawl.config.json", JSON.stringify({ url: database.url }));
      return { folder, database };
    };

    test("migrate, start, worker and --wait lead from an empty database to a result", async () => {
      const { folder, database } = await onServer();
      expect(await folder.error("runs")).toMatch(/ lacks migrations? 1.*; run: pawl migrate$/);
      const { pending } = await folder.json("migrate", "--status");
      expect((await folder.json("migrate")).applied).toEqual(pending);

      const worker = folder.begin(["worker", workflows, "--json"]);
      await worker.until("worker.started");
      expect((await folder.json("start", "echo", '"hello"', "--wait")).output).toBe("hello");
      const { id } = await folder.json("start", "order", '{"sku": "A-1"}');
      await folder.text("signal", id, "approved", '{"by": "me"}');
      await worker.until(`"runId":"${id}"`);
      const { code, stdout } = await worker.stop();
      expect(code).toBe(0);
      expect(stdout).toContain('"event":"worker.stopped"');

      expect((await folder.json("runs")).runs).toHaveLength(2);
      expect(await folder.text("show", id)).toMatch(/^order {2}completed\n/);
      expect(await folder.text("verify")).toMatch(/^2 runs, \d+ events: the tables match the logs\.\n$/);
      // The server counts a session for a moment longer than its process lives.
      await until(async () => (await database.connections()) === 0);
    });

    test("doctor checks the server and shows no password", async () => {
      const { folder, database } = await onServer();
      await folder.text("migrate");
      const url = new URL(database.url);
      if (kind === "sqld") url.searchParams.set("authToken", "s3cret");
      else {
        url.username ||= "root";
        url.password = "s3cret";
      }
      const { stdout, stderr } = await folder.pawl("doctor", "--url", url.href);
      expect(stdout).toContain(kind === "sqld" ? "?authToken=… " : `${url.username}:…@`);
      expect(`${stdout}${stderr}`).not.toContain("s3cret");
      const { checks } = await folder.json("doctor");
      expect(checks).toContainEqual({ name: "clock", verdict: "ok", text: "the database and this machine agree" });
      expect(checks).toContainEqual({ name: "migrations", verdict: "ok", text: "up to date" });
    });

    if (kind === "postgres") {
      test("--schema keeps the tables of two schemas separate", async () => {
        const { folder } = await onServer();
        await folder.text("migrate", "--schema", "jobs");
        expect(await folder.text("runs", "--schema", "jobs")).toBe("No runs.\n");
        expect(await folder.error("runs")).toContain("run: pawl migrate");
        const worker = folder.begin(["worker", workflows, "--schema", "jobs"]);
        await worker.until("(schema jobs)");
        expect(await folder.json("workers", "--schema", "jobs")).toMatchObject([{ host: hostname(), state: "live" }]);
        expect((await worker.stop()).code).toBe(0);
      });
    }
  },
  ["postgres", "mysql", "sqld"],
);
