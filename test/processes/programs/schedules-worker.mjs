// A worker that fires schedules of every second in a process of its own; campaigns kill it and start it again. Its one
// argument contains all settings. Each run appends a line to a file outside of the database, and inserts a row in a
// transactional step.

import { closeSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, schedule, workflow } from "pawl";

const { url, effects, lease, name, endAt } = JSON.parse(process.argv[2]);
const file = openSync(effects, "a");
const insert = url.startsWith("postgres")
  ? "INSERT INTO schedule_effects (run_id, schedule, scheduled_for) VALUES ($1, $2, $3)"
  : "INSERT INTO schedule_effects (run_id, schedule, scheduled_for) VALUES (?, ?, ?)";

const tick = workflow("tick", async (ctx, { ms }) => {
  const { name: scheduleName, scheduledFor } = ctx.schedule;
  await ctx.step("note", async () => {
    writeSync(
      file,
      `${JSON.stringify({ run: ctx.runId, schedule: scheduleName, pid: process.pid, at: Date.now() })}\n`,
    );
    await sleep(ms);
  });
  await ctx.transaction("effect", async (tx) => {
    await tx.query(insert, [ctx.runId, scheduleName, scheduledFor.getTime()]);
  });
});

/** Every third run is still open when the next occurrence is due. */
const sometimesSlow = ({ scheduledFor }) => ({ ms: (scheduledFor.getTime() / 1_000) % 3 === 0 ? 1_300 : 0 });
/** Workers compute the same input for a different time, so that some decide about a schedule that has changed meanwhile. */
const slowlyComputed = async ({ scheduledFor }) => {
  if ((scheduledFor.getTime() / 1_000) % 4 === 0) await sleep(Math.random() * 2_500);
  return sometimesSlow({ scheduledFor });
};
const common = { workflow: tick, ...(endAt === undefined ? {} : { endAt: new Date(endAt) }) };
const schedules = [
  schedule("skip", { ...common, every: "1s", input: { ms: 0 } }),
  schedule("buffer_one", { ...common, every: "1s", input: sometimesSlow, overlap: "bufferOne" }),
  schedule("buffer_all", { ...common, every: "1s", input: sometimesSlow, overlap: "bufferAll", catchUp: "all" }),
  schedule("cancel_other", { ...common, every: "1s", input: sometimesSlow, overlap: "cancelOther" }),
  schedule("with_jitter", {
    ...common,
    every: "1s",
    input: sometimesSlow,
    overlap: "allowAll",
    catchUp: "all",
    jitter: 700,
  }),
  schedule("slow_input", { ...common, every: "1s", input: slowlyComputed }),
  schedule("each_minute", { ...common, cron: "* * * * *", input: { ms: 0 } }),
];

const print =
  (level) =>
  (...args) =>
    console.error(new Date().toISOString(), level, ...args.map((arg) => (arg instanceof Error ? arg.stack : arg)));
const pawl = await connect(url, {
  logger: { debug: () => {}, info: () => {}, warn: print("warn"), error: print("error") },
});
const worker = pawl.worker({ workflows: [tick], schedules, name, lease, poll: 1_000, grace: 5_000 });

process.on("message", async (message) => {
  if (message !== "stop") return;
  await pawl.close();
  closeSync(file);
  // Nothing is left open now, so the process must end by itself.
  process.disconnect();
});
// The process that started this one is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await worker.start();
process.send("ready");
