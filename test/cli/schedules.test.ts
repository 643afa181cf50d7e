/** `schedules`: the list, one schedule with its ledger, the next instants, and the commands. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { connect, type Pawl, schedule, workflow } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Folder, newFolder } from "./command-line.js";
import { silent } from "./sample-runs.js";

const report = workflow("report", async (ctx) => {
  await ctx.waitForSignal("send");
});
/** None of the schedules of these tests fires by itself. */
const farAway = "2100-01-01T00:00Z";
const berlin = { cron: "30 2 * * *", timeZone: "Europe/Berlin" };

async function withPawl<T>(folder: Folder, act: (pawl: Pawl) => Promise<T>): Promise<T> {
  const pawl = await connect(folder.url, { app: "billing", logger: silent });
  try {
    return await act(pawl);
  } finally {
    await pawl.close();
  }
}

/** A folder whose database has the workflow, and what `prepare` puts into it. */
async function folderWith(prepare: (pawl: Pawl) => Promise<unknown>): Promise<Folder> {
  const folder = newFolder();
  await withPawl(folder, async (pawl) => {
    await pawl.createWorkflow("report");
    await prepare(pawl);
  });
  return folder;
}

const withNightly = () =>
  folderWith(({ schedules }) => schedules.put("nightly", { workflow: "report", ...berlin, startAt: farAway }));

/** Columns are as wide as the times in them, so two or more spaces are shown as two. */
const squeezed = (text: string) => text.trimEnd().replace(/ {2,}/g, "  ").split("\n");

describe("what is printed of a database with schedules in all states", () => {
  let folder: Folder;
  beforeAll(async () => {
    folder = new Folder();
    await withPawl(folder, async (pawl) => {
      const { schedules } = pawl;
      await pawl.createWorkflow("report");
      const declared = schedule("declared", {
        workflow: report,
        input: () => undefined,
        every: "1h",
        startAt: farAway,
      });
      const worker = pawl.worker({ workflows: [report], schedules: [declared] });
      await worker.start();
      await worker.stop();
      await schedules.put("nightly", {
        workflow: "report",
        input: { id: 42 },
        ...berlin,
        startAt: farAway,
        jitter: "5m",
      });
      await schedules.trigger("nightly", { by: "ada", reason: "A customer asked." });
      await schedules.trigger("nightly");
      await schedules.put("held", { workflow: "report", every: "45m", startAt: farAway, overlap: "bufferOne" });
      await schedules.pause("held", {
        by: "ada",
        reason: "The books are closed.",
        until: new Date("2099-12-31T23:00Z"),
      });
      await schedules.put("over", { workflow: "report", at: ["2020-01-01T00:00Z"], maxRuns: 3, pauseOnFailure: 2 });
      await schedules.put("broken", { workflow: "nowhere", at: [farAway], catchUp: { mode: "all", within: "2 days" } });
      await schedules.trigger("broken");
    });
  });
  afterAll(() => folder.remove());

  test("the list has a line for each, with its rule in plain words", async () => {
    const text = await folder.text("schedules");
    expect(await folder.text("schedules", "list")).toBe(text);
    const [head, ...lines] = squeezed(text);
    expect(head).toBe("name  workflow  rule  status  next  last");
    expect(lines.map((line) => line.split("  ")[0])).toEqual(["broken", "declared", "held", "nightly", "over"]);
    expect(lines[2]).toMatch(/^held {2}report {2}Every 4.* {2}paused {2}in [\d,]+ days$/);
    expect(lines[0]).toMatch(/failed to start .*$/);
    expect(lines[4]).toMatch(/^over {2}report {2}Once, .* {2}ended$/);
    const { schedules, next } = await folder.json("schedules");
    expect(schedules.map(({ name, status }: { name: string; status: string }) => `${name} ${status}`)).toEqual([
      "broken active",
      "declared active",
      "held paused",
      "nightly active",
      "over ended",
    ]);
    expect([schedules[0].last.outcome, schedules[3].rule, next]).toEqual([
      "failed_to_start",
      "At 02:30 every day, Europe/Berlin, from 2100-01-01 00:00 UTC on",
      null,
    ]);
  });

  test("the list is filtered by application, cut into pages, and reduced to names", async () => {
    const names = (page: any) => page.schedules.map(({ name }: { name: string }) => name);
    expect(names(await folder.json("schedules", "list", "--app", "billing"))).toEqual(["declared"]);
    expect(names(await folder.json("schedules", "--app", "shop"))).toEqual([]);
    expect(await folder.text("schedules", "--app", "shop")).toBe("No schedules.\n");
    const page = await folder.json("schedules", "list", "--limit", "3");
    expect(await folder.text("schedules", "--limit", "3")).toContain(`There are more: --cursor ${page.next}`);
    expect(names(await folder.json("schedules", "list", "--cursor", page.next))).toEqual(["nightly", "over"]);
    expect(await folder.text("schedules", "list", "--names")).toBe("broken\ndeclared\nheld\nnightly\nover\n");
    expect(await folder.json("schedules", "list", "--names")).toHaveLength(5);
  });

  test("show has the facts, the next instants and the ledger with a strip of outcomes", async () => {
    const lines = squeezed(await folder.text("schedules", "show", "nightly"));
    expect(lines.slice(0, 3)).toEqual([
      "nightly  active",
      "  workflow  report",
      "  rule  At 02:30 every day, Europe/Berlin, from 2100-01-01 00:00 UTC on",
    ]);
    expect(lines.find((line) => line.startsWith("  next  "))).toMatch(/^ {2}next {2}1 Jan 2100 01:3\d \(in .* days\)/);
    for (const fact of ["  runs  1 run open", '  input  {"id":42}', "  overlap  skip", "  jitter  up to 5m"])
      expect(lines).toContain(fact);
    const next = lines.slice(lines.indexOf("next") + 1, lines.indexOf("next") + 11);
    expect(next[0]).toMatch(/^ {2}Fri 2100-01-01 02:30 \+01:00 {2}in [\d,]+ days$/);
    expect(next).toHaveLength(10);
    const ledger = lines.slice(lines.indexOf("ledger  the latest is on the right") + 1);
    expect([...(ledger[0]?.trim() ?? "")].sort()).toEqual(["o", "✓"]);
    expect(ledger[1]).toMatch(/✓ ran/);
    expect(ledger.filter((line) => line.includes("triggered by ada · A customer asked."))).toHaveLength(1);
    expect(ledger.filter((line) => line.includes("skipped, a run was open"))).toHaveLength(2);

    const { schedule: info, next: instants, occurrences } = await folder.json("schedules", "show", "nightly");
    expect([info.name, instants.length, occurrences.length]).toEqual(["nightly", 10, 2]);
    const ran = occurrences.find(({ outcome }: { outcome: string }) => outcome === "ran");
    expect(ran).toMatchObject({ manual: true, by: "ada" });
    const run = squeezed(await folder.text("show", ran.runId));
    expect(run.find((line) => line.startsWith("  schedule  "))).toMatch(/^ {2}schedule {2}nightly, for .*, triggered$/);
    expect((await folder.json("show", ran.runId)).schedule).toMatchObject({ name: "nightly", manual: true });
    expect((await folder.json("schedules", "show", "nightly", "--limit", "1")).occurrences).toHaveLength(1);
  });

  test("show tells why a schedule does not run", async () => {
    const held = squeezed(await folder.text("schedules", "show", "held"));
    expect(held.find((line) => line.startsWith("  paused"))).toMatch(
      /^ {2}paused {2}.* by ada, until 31 Dec 2099 23:00 \(in .*\): The books are closed\.$/,
    );
    const broken = squeezed(await folder.text("schedules", "show", "broken"));
    expect(broken).toContain("  catch-up  all, if it is late by at most 2 days");
    expect(broken.at(-1)).toMatch(/failed to start .*triggered · Workflow "nowhere" is not registered/);
    const over = squeezed(await folder.text("schedules", "show", "over"));
    expect(over).toContain("  ends  after 3 runs; 0 so far");
    expect(over).toContain("  failures  0 in a row; it pauses after 2");
    expect(over).not.toContain("next");
    expect(await folder.text("schedules", "show", "declared")).toMatch(/input +computed by code/);
  });

  test("bash completes actions, options and names from the database", async () => {
    const script = folder.write("completion.bash", await folder.text("completion", "bash"));
    const program = new URL("../../dist/cli/main.js", import.meta.url).pathname;
    const ask = async (...words: string[]) => {
      const pawl = `pawl() { '${process.execPath}' '${program}' "$@"; }`;
      const code = `${pawl}; source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pawl; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout } = await promisify(execFile)("bash", ["-c", code, script, ...words], { cwd: folder.path });
      return stdout.trim().split("\n");
    };
    expect(await ask("pawl", "schedules", "tr")).toEqual(["trigger"]);
    expect(await ask("pawl", "schedules", "--dr")).toEqual(["--dry-run"]);
    expect(await ask("pawl", "schedules", "show", "ni")).toEqual(["nightly"]);
  });
});

test("next lists instants after a time of the schedule's zone, and marks the days on which the clocks change", async () => {
  const folder = await folderWith(({ schedules }) => schedules.put("nightly", { workflow: "report", ...berlin }));
  const text = await folder.text("schedules", "next", "nightly", "--count", "3", "--from", "2026-10-24");
  const lines = squeezed(text).map((line) => line.split("  "));
  expect(lines.map(([local, , note]) => [local, note])).toEqual([
    ["Sat 2026-10-24 02:30 +02:00", undefined],
    ["Sun 2026-10-25 02:30 +02:00", "the clocks change on this day"],
    ["Mon 2026-10-26 02:30 +01:00", undefined],
  ]);
  const json = await folder.json("schedules", "next", "nightly", "--from", "2026-10-24T00:30:00Z", "--count", "1");
  expect(json).toEqual({
    timeZone: "Europe/Berlin",
    instants: [
      { at: "2026-10-25T00:30:00.000Z", local: "Sun 2026-10-25 02:30", offset: "+02:00", transitionDay: true },
    ],
  });
  expect((await folder.json("schedules", "next", "nightly")).instants).toHaveLength(10);
});

test("pause and resume", async () => {
  const folder = await withNightly();
  const said = await folder.text(
    ...["schedules", "pause", "nightly", "--until", "2099-12-31", "--by", "ada", "--reason", "closed"],
  );
  expect(said).toMatch(/^Schedule "nightly" is paused until 30 Dec 2099 23:00 \(in .* days\); open runs go on\.\n$/);
  const paused = await folder.json("schedules", "pause", "nightly", "--until", "2 days");
  expect(Date.parse(paused.pausedUntil) - Date.parse(paused.pausedAt)).toBeGreaterThanOrEqual(2 * 86_400_000);
  expect((await folder.json("schedules", "show", "nightly")).schedule.status).toBe("paused");
  expect(await folder.text("schedules", "resume", "nightly")).toMatch(
    /^Schedule "nightly" is active; next: 1 Jan 2100 01:30 \(in .* days\)\.\n$/,
  );
});

test("trigger starts a run; one that is not started is an error", async () => {
  const folder = await withNightly();
  const said = await folder.text("schedules", "trigger", "nightly", "--by", "ada");
  const [, id] = /^Started run (\S+)\.\n$/.exec(said) ?? [];
  expect((await folder.json("show", id as string)).schedule).toMatchObject({ name: "nightly", manual: true });
  const open = 'A run of "nightly" is open; --force starts another one.';
  expect(await folder.error("schedules", "trigger", "nightly")).toBe(open);
  const { code, stdout, stderr } = await folder.pawl("schedules", "trigger", "nightly", "--json");
  expect([code, JSON.parse(stdout).outcome, stderr]).toEqual([1, "skipped_overlap", `${open}\n`]);
  expect((await folder.json("schedules", "trigger", "nightly", "--force")).outcome).toBe("ran");
});

test("backfill lists what it would run, and runs it", async () => {
  const folder = await folderWith(({ schedules }) =>
    schedules.put("nightly", { workflow: "report", ...berlin, endAt: "2020-02-01T00:00Z" }),
  );
  const range = ["--from", "2020-01-01", "--to", "2020-01-03"];
  expect(squeezed(await folder.text("schedules", "backfill", "nightly", ...range, "--dry-run"))).toEqual([
    "Would start 2 runs, one after another.",
    "  Wed 2020-01-01 02:30 +01:00",
    "  Thu 2020-01-02 02:30 +01:00",
  ]);
  expect(await folder.text("schedules", "backfill", "nightly", ...range, "--by", "ada")).toContain("Starts 2 runs");
  expect(await folder.json("schedules", "backfill", "nightly", "--from", "2020-01-01", "--dry-run")).toMatchObject({
    ...{ dryRun: true, timeZone: "Europe/Berlin", alreadyDone: 2 },
    instants: expect.arrayContaining(["2020-01-03T01:30:00.000Z"]),
  });
  expect(await folder.text("schedules", "backfill", "nightly", ...range)).toBe(
    "Nothing to run. 2 instants of this time ran, or will run, anyway.\n",
  );
  const all = await folder.text("schedules", "backfill", "nightly", "--from", "2020-01-01", "--dry-run");
  expect(all).toMatch(/… and 9 more; --json lists all of them\n$/);
});

test("delete removes what was put, and not what code declares", async () => {
  const folder = await withNightly();
  expect(await folder.text("schedules", "delete", "nightly")).toBe(
    'Schedule "nightly" is deleted; its open runs go on, and its ledger stays.\n',
  );
  expect(await folder.text("schedules")).toBe("No schedules.\n");
  await withPawl(folder, async (pawl) => {
    const declared = schedule("declared", { workflow: report, every: "1h", startAt: farAway });
    await pawl.worker({ workflows: [], schedules: [declared] }).start();
  });
  expect(await folder.error("schedules", "delete", "declared")).toMatch(
    /^Schedule "declared" is declared by the code of application "billing"/,
  );
});

test.each([
  [["shwo", "nightly"], 'pawl schedules has no "shwo"; did you mean "show"?'],
  [
    ["frobnicate"],
    'pawl schedules has no "frobnicate"; it has list, show, next, pause, resume, trigger, backfill, delete.',
  ],
  [["show"], "Which schedule? Name it: pawl schedules show <schedule>"],
  [["list", "nightly"], '"nightly" is one argument too many; show a schedule with: pawl schedules show nightly'],
  [["show", "nightyl"], 'There is no schedule "nightyl"; did you mean "nightly"?'],
  [["trigger", "completely-else"], 'There is no schedule "completely-else". `pawl schedules` lists them.'],
  [["next", "nightly", "--force"], "--force goes with trigger, not with next."],
  [["resume", "nightly", "--reason", "x"], "--reason goes with pause and trigger and backfill, not with resume."],
  [
    ["next", "nightly", "--from", "soon"],
    '--from takes a time (2026-11-16, "2026-11-16 14:00", 2026-11-16T14:00Z) or how long ago ("2 days"), not "soon".',
  ],
  [["next", "nightly", "--count", "0"], "schedules.next() takes a count from 1 to 1000, not 0."],
  [
    ["pause", "nightly", "--until", "2026-13-01"],
    '--until takes a time ("2026-11-16 14:00") or how long from now ("2 days"), not "2026-13-01".',
  ],
  [
    ["backfill", "nightly"],
    "--from is missing; say since when: pawl schedules backfill nightly --from 2026-11-01 --dry-run",
  ],
  [["list", "--limit", "many"], '--limit takes a whole number, not "many".'],
])("%j is refused in one sentence", async (args, sentence) => {
  const folder = await withNightly();
  expect(await folder.error("schedules", ...args)).toBe(sentence);
});
