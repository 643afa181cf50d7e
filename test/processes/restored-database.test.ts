/**
 * The database goes back in time under live workers: a standby that lagged behind takes over, or a backup is restored.
 * Later writes are lost. Workers continue with the logs as they are, and write nothing after a gap.
 */
import { execFileSync } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { connect, type Logger, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { ownPgbouncer, ownPostgres } from "../../scripts/servers.mjs";
import { isLeftOut } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { Gate, until } from "../support/waiting.js";

interface OwnServer {
  readonly dir: string;
  readonly url: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  kill9(): Promise<void>;
  remove(): Promise<void>;
}

/** Connections to PgBouncer stay open, and statements wait there, while another server takes over. */
const ways = ["directly", "through PgBouncer"].filter((way) => way === "directly" || !isLeftOut("pgbouncer"));

test.skipIf(isLeftOut("postgres")).each(ways)(
  "workers of a PostgreSQL that lost the end of its logs replay from the remaining logs under a new epoch (%s)",
  async (way) => {
    const server: OwnServer = await ownPostgres();
    onTestFinished(() => server.remove());
    const pooler = way === "directly" ? null : await ownPgbouncer(server.url);
    onTestFinished(() => pooler?.remove());
    const warnings: string[] = [];
    const warn = (...args: unknown[]) => void warnings.push(args.join(" "));
    const logger: Logger = { debug: () => {}, info: () => {}, warn, error: warn };
    const pawl = await connect(pooler?.url ?? server.url, { logger });
    onTestFinished(() => pawl.close());

    const first = new Gate();
    const second = new Gate();
    const did = { first: 0, second: 0, last: 0 };
    const body = (name: keyof typeof did, gate: Gate) => async () => {
      did[name] += 1;
      await gate.opened;
      return name;
    };
    const open = new Gate();
    open.open();
    /** This run has steps in the part that is lost, and continues after it. */
    const long = workflow("long", async (ctx) => {
      await ctx.step("before", () => "before");
      await ctx.step("first", body("first", first));
      await ctx.step("also", () => "also");
      await ctx.step("second", body("second", second));
      return ctx.step("last", body("last", open));
    });
    /** This run ends in the part that is lost. */
    const ended = workflow("ended", async (ctx) => ctx.step("first", body("first", first)));
    /** This run is parked in the part that is lost. */
    const parked = workflow("parked", async (ctx) => {
      await ctx.step("first", body("first", first));
      return ctx.waitForSignal("go");
    });
    // Behind PgBouncer, the timeout is so long that no statement is given up: no new connection reveals the other
    // server.
    const lease = pooler === null ? "3s" : "2 minutes";
    const worker = await pawl.worker({ workflows: [long, ended, parked], lease, poll: 200 }).start();
    const longs = await pawl.startMany(long, Array(5).fill(undefined));
    const others = [...(await pawl.startMany(ended, [undefined, undefined])), await pawl.start(parked)];
    await until(() => did.first === 8);

    const data = join(server.dir, "data");
    await server.stop();
    // The files must belong to the account of the server, and so must the copy.
    execFileSync("cp", ["-a", data, `${data}.copy`]);
    await server.start();

    first.open();
    await until(() => did.second === 5);
    await Promise.all(others.slice(0, 2).map((run) => run.result()));
    await until(async () => (await others[2]?.status()) === "waiting");

    const pause = pooler === null ? null : await rawSql(consoleOf(pooler.url));
    await pause?.query("PAUSE");
    await server.kill9();
    rmSync(data, { recursive: true });
    renameSync(`${data}.copy`, data);
    await server.start();
    await pause?.query("RESUME");
    await pause?.close();
    second.open();

    expect(await Promise.all(longs.map((run) => run.result()))).toEqual(Array(5).fill("last"));
    expect(await Promise.all(others.slice(0, 2).map((run) => run.result()))).toEqual(["first", "first"]);
    await others[2]?.signal("go", "gone");
    expect(await others[2]?.result()).toBe("gone");
    expect(warnings.join("\n")).toContain("does not have the last write of this process");

    const sql = await rawSql(server.url);
    const gaps = await sql.query(`SELECT e.run_id, e.seq FROM pawl_events e WHERE e.seq > 1 AND NOT EXISTS (
      SELECT 1 FROM pawl_events p WHERE p.run_id = e.run_id AND p.seq + p.span = e.seq)`);
    expect(gaps).toEqual([]);
    await sql.close();
    expect((await pawl.verify()).differences).toEqual([]);
    await worker.stop();
  },
  120_000,
);

function consoleOf(url: string): string {
  const own = new URL(url);
  own.pathname = "/pgbouncer";
  return own.href;
}
