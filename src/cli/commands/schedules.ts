import type { OccurrenceInfo, ScheduleInfo } from "../../client/schedules/schedule-info.js";
import type { Pawl } from "../../connect.js";
import { ScheduleNotFoundError } from "../../core/errors/errors.js";
import { didYouMean } from "../../core/naming/nearest-word.js";
import { describeInstant } from "../../core/schedule/local-time.js";
import { integerArgument } from "../arguments.js";
import { CliError } from "../cli-error.js";
import { type Call, command, type OptionSpecs } from "../command.js";
import { withPawl } from "../database.js";
import { formatCount } from "../format-count.js";
import { instantArgument, untilArgument } from "../schedule-times.js";
import {
  drawBackfill,
  drawInstants,
  drawSchedule,
  drawSchedules,
  type ScheduleView,
  triggerSentence,
} from "../schedule-view.js";
import { absoluteAndRelativeTime } from "../times.js";

const options = {
  app: { type: "string", value: "<name>", about: "list: only schedules that this application declares" },
  names: { type: "boolean", about: "list: print only the names" },
  limit: {
    type: "string",
    value: "<n>",
    about: "list: how many; default 100. show: how many of the ledger; default 50",
  },
  cursor: { type: "string", value: "<next>", about: "list: continue after the page that printed this cursor" },
  count: { type: "string", value: "<n>", about: "next: how many; default 10" },
  from: { type: "string", value: "<time>", about: "next: after this time. backfill: the first instant" },
  to: { type: "string", value: "<time>", about: "backfill: the last instant; default now" },
  "dry-run": { type: "boolean", about: "backfill: start nothing, only list what would run" },
  until: { type: "string", value: "<time>", about: 'pause: when it resumes by itself: a time, or "2 days" from now' },
  force: { type: "boolean", about: "trigger: start a run although another one is open" },
  by: { type: "string", value: "<name>", about: "pause, trigger, backfill: who does it" },
  reason: { type: "string", value: "<text>", about: "pause, trigger, backfill: why" },
} as const satisfies OptionSpecs;

type ScheduleCall = Call<typeof options>;
type OptionName = keyof typeof options;

interface Action {
  readonly takes: readonly OptionName[];
  run(call: ScheduleCall, pawl: Pawl, name: string): Promise<void>;
}

const auditNames = ["by", "reason"] as const;

const actions: Readonly<Record<string, Action>> = {
  list: { takes: ["app", "names", "limit", "cursor"], run: list },
  show: { takes: ["limit"], run: show },
  next: { takes: ["count", "from"], run: next },
  pause: { takes: ["until", ...auditNames], run: pause },
  resume: { takes: [], run: resume },
  trigger: { takes: ["force", ...auditNames], run: trigger },
  backfill: { takes: ["from", "to", "dry-run", ...auditNames], run: backfill },
  delete: { takes: [], run: remove },
};
const actionNames = Object.keys(actions);

export const schedules = command({
  name: "schedules",
  about: "List and show schedules; pause, trigger and backfill them",
  args: ["[action]", "[schedule]"],
  options,
  example: 'pawl schedules pause nightly_report --until "2 days" --reason "the books are closed"',
  actions: actionNames,
  printNames: "schedules list --names",

  run: async (call) => {
    const [word = "list", name] = call.args;
    const action = Object.hasOwn(actions, word) ? actions[word] : undefined;
    if (action === undefined)
      throw new CliError(
        `pawl schedules has no "${word}"${didYouMean(word, actionNames) || `; it has ${actionNames.join(", ")}.`}`,
      );
    checkOptions(call, word, action);
    if (word === "list" && name !== undefined)
      throw new CliError(`"${name}" is one argument too many; show a schedule with: pawl schedules show ${name}`);
    if (word !== "list" && name === undefined)
      throw new CliError(`Which schedule? Name it: pawl schedules ${word} <schedule>`);
    await withPawl(call, async (pawl) => {
      try {
        await action.run(call, pawl, name ?? "");
      } catch (error) {
        throw error instanceof ScheduleNotFoundError ? await notFound(pawl, error.schedule) : error;
      }
    });
  },
});

function checkOptions({ options: given }: ScheduleCall, word: string, { takes }: Action): void {
  const wrong = (Object.keys(options) as OptionName[]).find(
    (name) => given[name] !== undefined && !takes.includes(name),
  );
  if (wrong === undefined) return;
  const users = actionNames.filter((name) => actions[name]?.takes.includes(wrong));
  throw new CliError(`--${wrong} goes with ${users.join(" and ")}, not with ${word}.`);
}

async function notFound(pawl: Pawl, name: string): Promise<CliError> {
  const known = (await pawl.schedules.list({ limit: 1_000 })).schedules.map((schedule) => schedule.name);
  const hint = didYouMean(name, known) || (known.length === 0 ? "; there are none." : ". `pawl schedules` lists them.");
  return new CliError(`There is no schedule "${name}"${hint}`);
}

async function list({ options: { app, names, cursor, limit }, out }: ScheduleCall, pawl: Pawl): Promise<void> {
  const page = await pawl.schedules.list({
    ...(app === undefined ? {} : { app }),
    ...(cursor === undefined ? {} : { cursor }),
    limit: integerArgument("limit", limit) ?? (names === true ? 1_000 : 100),
  });
  if (names === true) {
    const list = page.schedules.map(({ name }) => name);
    return out.print(list, () => list);
  }
  out.print(page, () => {
    const more = page.next === null ? [] : [out.paint("dim", `There are more: --cursor ${page.next}`)];
    if (page.schedules.length === 0 && more.length === 0) return "No schedules.";
    return [...drawSchedules(page.schedules, out), ...more];
  });
}

async function show({ options: { limit }, out }: ScheduleCall, pawl: Pawl, name: string): Promise<void> {
  const [schedule, dates, ledger] = await Promise.all([
    pawl.schedules.get(name),
    pawl.schedules.next(name),
    pawl.schedules.occurrences(name, { limit: integerArgument("limit", limit) ?? 50 }),
  ]);
  const view: ScheduleView = { schedule, next: instantsOf(schedule, dates), occurrences: ledger.occurrences };
  out.print(view, () => drawSchedule(view, out));
}

async function next({ options: { count, from }, out }: ScheduleCall, pawl: Pawl, name: string): Promise<void> {
  const schedule = await pawl.schedules.get(name);
  const after = instantArgument("from", from, schedule.timeZone, out.now());
  const dates = await pawl.schedules.next(name, integerArgument("count", count), after);
  const instants = instantsOf(schedule, dates);
  out.print({ timeZone: schedule.timeZone, instants }, () =>
    instants.length === 0 ? "It does not fire any more." : drawInstants(instants, out),
  );
}

const instantsOf = ({ timeZone }: ScheduleInfo, dates: readonly Date[]) =>
  dates.map((at) => ({ at, ...describeInstant(timeZone, at.getTime()) }));

function auditOf({ options: { by, reason } }: ScheduleCall) {
  return { ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) };
}

async function pause(call: ScheduleCall, pawl: Pawl, name: string): Promise<void> {
  const { out } = call;
  const { timeZone } = await pawl.schedules.get(name);
  const until = untilArgument(call.options.until, timeZone);
  const schedule = await pawl.schedules.pause(name, { ...auditOf(call), ...(until === undefined ? {} : { until }) });
  const end = schedule.pausedUntil === null ? "" : ` until ${absoluteAndRelativeTime(schedule.pausedUntil, out.now())}`;
  out.print(schedule, () => `Schedule "${name}" is paused${end}; open runs go on.`);
}

async function resume({ out }: ScheduleCall, pawl: Pawl, name: string): Promise<void> {
  const schedule = await pawl.schedules.resume(name);
  const { nextAt } = schedule;
  const nextText = nextAt === null ? "" : `; next: ${absoluteAndRelativeTime(nextAt, out.now())}`;
  out.print(schedule, () => `Schedule "${name}" is ${schedule.status}${nextText}.`);
}

/** An occurrence that does not run is printed as JSON, and is an error nevertheless: nothing was started. */
async function trigger(call: ScheduleCall, pawl: Pawl, name: string): Promise<void> {
  const force = call.options.force === true ? { force: true } : {};
  const occurrence = await pawl.schedules.trigger(name, { ...auditOf(call), ...force });
  if (call.out.json || isAccepted(occurrence)) call.out.print(occurrence, () => triggerSentence(occurrence));
  if (!isAccepted(occurrence)) throw new CliError(triggerSentence(occurrence));
}

const isAccepted = ({ outcome }: OccurrenceInfo) =>
  outcome === "ran" || outcome === "buffered" || outcome === "requested";

async function backfill(call: ScheduleCall, pawl: Pawl, name: string): Promise<void> {
  const { options: given, out } = call;
  const { timeZone } = await pawl.schedules.get(name);
  const from = instantArgument("from", given.from, timeZone, out.now());
  if (from === undefined)
    throw new CliError(
      `--from is missing; say since when: pawl schedules backfill ${name} --from 2026-11-01 --dry-run`,
    );
  const to = instantArgument("to", given.to, timeZone, out.now());
  const dryRun = given["dry-run"] === true;
  const { instants, alreadyDone } = await pawl.schedules.backfill(name, {
    from,
    ...(to === undefined ? {} : { to }),
    ...(dryRun ? { dryRun } : {}),
    ...auditOf(call),
  });
  out.print({ ...(dryRun ? { dryRun } : {}), timeZone, instants, alreadyDone }, () => {
    const done =
      alreadyDone === 0 ? "" : ` ${formatCount(alreadyDone, "instant")} of this time ran, or will run, anyway.`;
    if (instants.length === 0) return `Nothing to run.${done}`;
    const count = formatCount(instants.length, "run");
    const head = dryRun ? `Would start ${count}, one after another.` : `Starts ${count}, one after another.`;
    return [`${head}${done}`, ...drawBackfill(instants, timeZone)];
  });
}

async function remove({ out }: ScheduleCall, pawl: Pawl, name: string): Promise<void> {
  await pawl.schedules.delete(name);
  out.print({ deleted: name }, () => `Schedule "${name}" is deleted; its open runs go on, and its ledger stays.`);
}
