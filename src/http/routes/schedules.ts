/** Routes about schedules. */

import { describeInstant } from "../../core/schedule/local-time.js";
import { parseInstant } from "../../core/schedule/parse-instant.js";
import type { ScheduleInfo, ScheduleOptions, Schedules } from "../../index.js";
import type { Call, Route } from "../route.js";
import { route } from "../route.js";
import {
  duration,
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
  time,
  zonedInstant,
} from "../schema.js";
import { heroSchema } from "../views/run-view.js";
import {
  catchUpModes,
  occurrenceSchema,
  occurrenceView,
  overlapPolicies,
  scheduleSchema,
  scheduleView,
} from "../views/schedule-view.js";
import {
  auditFields,
  auditOf,
  emptyBody,
  listedPayloadBytes,
  operatorOf,
  payloadParameters,
  readValue,
  valueField,
} from "./common.js";

const nameOf = ({ params }: Pick<Call, "params">) => params.schedule as string;

const pageFields = {
  limit: (what: string, defaultLimit: number) =>
    optional(integer(`How many ${what}. Default ${defaultLimit}.`, 1, 1_000)),
  cursor: optional(text("The `next` of the previous page.")),
  next: nullable(text("The `cursor` of the next page; null: this is the last page.")),
};

const dates = (description: string) =>
  optional(list(description, text("A date with its zone.", { maxLength: 100 }), 1_000));

const putFields = {
  workflow: text("The name of the workflow.", { maxLength: 200 }),
  input: optional(valueField("The input of its runs.")),
  cron: optional(
    text("A cron expression of five fields. One of `cron`, `every` and `at` is needed.", { maxLength: 1_000 }),
  ),
  timeZone: optional(text("The IANA name of the zone of the cron expression. Default: UTC.", { maxLength: 100 })),
  gap: optional(oneOf("What becomes of a local time that the clocks skip.", ["shift", "skip"])),
  repeat: optional(oneOf("Which one of a local time that the clocks repeat.", ["first", "second", "both"])),
  every: optional(duration("The time between two occurrences.")),
  offset: optional(duration("Moves the instants of `every`.")),
  at: dates("The instants."),
  startAt: optional(text("It does not fire before this date.", { maxLength: 100 })),
  endAt: optional(text("It does not fire after this date.", { maxLength: 100 })),
  except: optional(
    list(
      "When it does not fire.",
      text("A cron expression, a day such as 2026-12-25, or a date with its zone.", { maxLength: 1_000 }),
      1_000,
    ),
  ),
  overlap: optional(oneOf("What happens while a run of it is open. Default: skip.", overlapPolicies)),
  catchUp: optional(
    object("What runs after downtime and after a pause. Default: the latest.", {
      mode: oneOf("Which occurrences run.", catchUpModes),
      within: optional(duration("Occurrences that are later than this do not run.")),
    }),
  ),
  jitter: optional(duration("Starts each run up to this much later.")),
  pauseOnFailure: optional(integer("Pauses it after this many failed runs in a row.", 1)),
  maxRuns: optional(integer("It ends after this many runs.", 1)),
  priority: optional(integer("The priority of its runs.", -2_147_483_648, 2_147_483_647)),
  tags: optional(list("Tags of its runs.", text("A tag.", { maxLength: 200 }), 100)),
  hero: optional(heroSchema),
  ...auditFields,
};

/** A command to one schedule, at `/api/v1/schedules/{schedule}/` and its name. */
const commandPath = (name: string) => `/api/v1/schedules/{schedule}/${name}`;

const answerWith = (call: Pick<Call, "writer">, schedule: ScheduleInfo) => ({
  json: scheduleView(schedule, call.writer),
});

/** What the row of the schedule does not record is in the log of the process. */
const logCommand = (call: Parameters<typeof operatorOf>[0] & Pick<Call, "pawl" | "params">, done: string) =>
  call.pawl.internals.log.info(`Schedule "${nameOf(call)}" was ${done} by ${operatorOf(call)}.`);

const readUntil = (until: string | number): Date | number | string =>
  typeof until === "string" && /^\d{4}-/.test(until) ? new Date(parseInstant("The pause", "until", until)) : until;

export const scheduleRoutes: readonly Route[] = [
  route(
    "GET",
    "/api/v1/schedules",
    "listSchedules",
    {
      summary: "List schedules by name, a page at a time",
      requires: "read",
      hasPayloads: true,
      query: object("", {
        ...payloadParameters,
        app: optional(text("Only schedules that this application declares.", { maxLength: 200 })),
        limit: pageFields.limit("schedules", 100),
        cursor: pageFields.cursor,
      }),
      answers: {
        200: object("", {
          schedules: list(
            "The schedules. Inputs of more than 16 kB are left out, unless `maxPayload` allows more.",
            scheduleSchema,
          ),
          next: pageFields.next,
        }),
      },
    },
    async (call) => {
      const { plain: _plain, maxPayload: _max, ...filter } = call.query;
      const question = `schedules ${JSON.stringify(filter)}`;
      const page = await call.questions.ask(question, () => call.pawl.schedules.list(filter));
      const writer = call.writerFor(listedPayloadBytes);
      return { json: { ...page, schedules: page.schedules.map((schedule) => scheduleView(schedule, writer)) } };
    },
  ),
  route(
    "GET",
    "/api/v1/schedules/{schedule}",
    "getSchedule",
    {
      summary: "Read a schedule",
      requires: "read",
      hasPayloads: true,
      query: object("", payloadParameters),
      answers: { 200: scheduleSchema },
      problems: [404],
    },
    async (call) => answerWith(call, await readSchedule(call)),
  ),
  route(
    "PUT",
    "/api/v1/schedules/{schedule}",
    "putSchedule",
    {
      summary: "Create a schedule, or give one that was put by the API other options",
      requires: "schedules",
      body: object("", putFields),
      answers: { 200: scheduleSchema },
      problems: [409],
    },
    async (call) => {
      const { by: _by, reason: _reason, input, ...options } = call.body;
      const given = input === undefined ? options : { ...options, input: readValue(input) };
      const schedule = await call.pawl.schedules.put(nameOf(call), given as ScheduleOptions<string>);
      logCommand(call, "put");
      return answerWith(call, schedule);
    },
  ),
  route(
    "GET",
    commandPath("next"),
    "getNextInstants",
    {
      summary: "Read the next instants of a schedule, without jitter",
      requires: "read",
      query: object("", {
        count: optional(integer("How many. Default 10.", 1, 1_000)),
        from: optional(zonedInstant("The instants are after this one. Default: now.")),
      }),
      answers: {
        200: object("The next instants.", {
          timeZone: text("The time zone of the rule."),
          instants: list(
            "The instants, the earliest first.",
            object("", {
              at: time("The instant."),
              local: text("The local time, such as `Sun 2026-10-25 02:30`."),
              offset: text("The offset of the local time from UTC, such as `+01:00`."),
              transitionDay: flag("Whether the clocks change on this local day."),
            }),
          ),
        }),
      },
      problems: [404],
    },
    async (call) => {
      const { count, from } = call.query;
      const { timeZone } = await readSchedule(call);
      const question = `next ${JSON.stringify([nameOf(call), count, from])}`;
      const instants = await call.questions.ask(question, () => call.pawl.schedules.next(nameOf(call), count, from));
      const views = instants.map((date) => ({
        at: date.toISOString(),
        ...describeInstant(timeZone, date.getTime()),
      }));
      return { json: { timeZone, instants: views } };
    },
  ),
  route(
    "GET",
    commandPath("occurrences"),
    "listOccurrences",
    {
      summary: "Read the ledger of a schedule, the newest occurrence first, a page at a time",
      requires: "read",
      query: object("", { limit: pageFields.limit("rows", 50), cursor: pageFields.cursor }),
      answers: {
        200: object("The ledger outlives the schedule. It is empty if there was no schedule of this name.", {
          occurrences: list("The rows.", occurrenceSchema),
          next: pageFields.next,
        }),
      },
    },
    async (call) => {
      const question = `occurrences ${JSON.stringify([nameOf(call), call.query])}`;
      const ask = () => call.pawl.schedules.occurrences(nameOf(call), call.query);
      const { occurrences, next } = await call.questions.ask(question, ask);
      return { json: { occurrences: occurrences.map((one) => occurrenceView(one, call.writer)), next } };
    },
  ),
  route(
    "POST",
    commandPath("pause"),
    "pauseSchedule",
    {
      summary: "Pause a schedule: it starts no runs until it is resumed",
      requires: "schedules",
      body: object("", {
        until: optional(duration("When it resumes by itself: a date with its zone, or how long from now.")),
        ...auditFields,
      }),
      answers: { 200: scheduleSchema },
      problems: [404, 409],
    },
    async (call) => {
      const { until } = call.body;
      const options = { ...auditOf(call), ...(until === undefined ? {} : { until: readUntil(until) }) };
      type PauseOptions = Parameters<Schedules["pause"]>[1];
      return answerWith(call, await call.pawl.schedules.pause(nameOf(call), options as PauseOptions));
    },
  ),
  route(
    "POST",
    commandPath("resume"),
    "resumeSchedule",
    {
      summary: "Resume a paused schedule",
      requires: "schedules",
      body: object("", auditFields),
      answers: { 200: scheduleSchema },
      problems: [404, 409],
    },
    async (call) => {
      const schedule = await call.pawl.schedules.resume(nameOf(call), auditOf(call));
      logCommand(call, "resumed");
      return answerWith(call, schedule);
    },
  ),
  route(
    "POST",
    commandPath("trigger"),
    "triggerSchedule",
    {
      summary: "Start a run of a schedule now, besides the regular ones",
      requires: "schedules",
      body: object("", { force: optional(flag("Starts the run although another one is open.")), ...auditFields }),
      answers: { 200: occurrenceSchema },
      problems: [404, 409],
    },
    async (call) => {
      const force = call.body.force === true ? { force: true } : {};
      const occurrence = await call.pawl.schedules.trigger(nameOf(call), { ...auditOf(call), ...force });
      return { json: occurrenceView(occurrence, call.writer) };
    },
  ),
  route(
    "POST",
    commandPath("backfill"),
    "backfillSchedule",
    {
      summary: "Run past occurrences of a schedule that have not run, one after another",
      requires: "schedules",
      body: object("", {
        from: zonedInstant("The first instant."),
        to: optional(zonedInstant("The last instant. Default: now.")),
        dryRun: optional(flag("Changes nothing, and only tells which instants would run.")),
        ...auditFields,
      }),
      answers: {
        200: object("What runs, or would run.", {
          instants: list("The instants that run, the earliest first; at most 10,000.", time("An instant.")),
          alreadyDone: integer("How many instants of the range have run already, or are going to.", 0),
        }),
      },
      problems: [404, 409],
    },
    async (call) => {
      const { from, to, dryRun } = call.body;
      const { instants, alreadyDone } = await call.pawl.schedules.backfill(nameOf(call), {
        from,
        ...(to === undefined ? {} : { to }),
        ...(dryRun === undefined ? {} : { dryRun }),
        ...auditOf(call),
      });
      return { json: { instants: instants.map((instant) => instant.toISOString()), alreadyDone } };
    },
  ),
  route(
    "DELETE",
    "/api/v1/schedules/{schedule}",
    "deleteSchedule",
    {
      summary: "Delete a schedule that was put by the API, or that its application does not declare any more",
      requires: "schedules",
      query: object("", auditFields),
      answers: { 200: emptyBody },
      problems: [404, 409],
    },
    async (call) => {
      await call.pawl.schedules.delete(nameOf(call));
      logCommand({ ...call, body: call.query }, "deleted");
      return { json: {} };
    },
  ),
];

const readSchedule = (call: Pick<Call, "pawl" | "params" | "questions">): Promise<ScheduleInfo> =>
  call.questions.ask(`schedule ${nameOf(call)}`, () => call.pawl.schedules.get(nameOf(call)));
