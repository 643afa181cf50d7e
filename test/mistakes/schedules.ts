import type { Mistake } from "./mistake.js";

export const mistakes: readonly Mistake[] = [
  {
    what: "a misspelt option of schedule",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, crone: "30 2 * * *" });',
    compiler: "Object literal may only specify known properties, but 'crone' does not exist",
  },
  {
    what: "a misspelt option of schedule, from untyped code",
    code: `const options: any = { workflow: order, input: { sku: "A-1", cents: 1 }, every: "5m", timezone: "UTC" };
schedule("nightly", options);`,
    sentence:
      'Schedule "nightly" has no option "timezone"; did you mean "timeZone"? Its options are workflow, input, cron, timeZone, gap, repeat, every, offset, at, startAt, endAt, except, overlap, catchUp, jitter, pauseOnFailure, maxRuns, priority, tags, hero.',
  },
  {
    what: "a schedule without its workflow",
    code: 'schedule("nightly", { every: "1h" });',
    compiler: "Property 'workflow' is missing in type",
  },
  {
    what: "a schedule without its workflow, from untyped code",
    code: `const options: any = { every: "1h" };
schedule("nightly", options);`,
    sentence: 'Schedule "nightly" does not say which workflow it starts; give it workflow: report, or a name.',
  },
  {
    what: "a schedule without the input that its workflow needs",
    code: 'schedule("nightly", { workflow: order, every: "1h" });',
    compiler: "Property 'input' is missing in type",
  },
  {
    what: "an input that the workflow does not take",
    code: 'schedule("nightly", { workflow: order, input: { sku: 7, cents: 1 }, every: "1h" });',
    compiler: "Type 'number' is not assignable to type 'string'.",
  },
  {
    what: "a function that computes another input than the workflow takes",
    code: 'schedule("nightly", { workflow: order, input: ({ scheduledFor }) => ({ sku: scheduledFor, cents: 1 }), every: "1h" });',
    compiler: "Type 'Date' is not assignable to type 'string'.",
  },
  {
    what: "a schedule that does not say when",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 } });',
    sentence: 'Schedule "nightly" does not say when it fires; give it cron: "30 2 * * *", every: "45m" or at: [dates].',
  },
  {
    what: "both cron and every",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, cron: "30 2 * * *", every: "1h" });',
    sentence: 'Schedule "nightly" has both cron and every; it takes one of cron, every and at.',
  },
  {
    what: "an hour that does not exist",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, cron: "30 25 * * *" });',
    sentence: 'Schedule "nightly" has "25" in the hour field of "30 25 * * *": an hour is 0 to 23.',
  },
  {
    what: "a cron expression with seconds",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, cron: "0 30 2 * * *" });',
    sentence:
      'Schedule "nightly" has 6 fields in the cron expression "0 30 2 * * *", which takes five: minute, hour, day-of-month, month and day-of-week; there is none for seconds, so write every: "30s" for periods below a minute.',
  },
  {
    what: "words in place of a cron expression",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, cron: "every day" });',
    sentence:
      'Schedule "nightly" has 2 fields in the cron expression "every day", which takes five: minute, hour, day-of-month, month and day-of-week.',
  },
  {
    what: "a day that no month has",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, cron: "0 0 31 2 *" });',
    sentence: 'Schedule "nightly" never fires: no month has the days of "0 0 31 2 *".',
  },
  {
    what: "a time zone that does not exist",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, cron: "30 2 * * *", timeZone: "Europe/Bonn" });',
    sentence:
      'Schedule "nightly" has "Europe/Bonn" as its timeZone, which is not the name of a zone; did you mean "Europe/London"?',
  },
  {
    what: "an abbreviation of a time zone",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, cron: "30 2 * * *", timeZone: "CEST" });',
    sentence:
      'Schedule "nightly" has "CEST" as its timeZone, which is not the name of a zone; write one such as "Europe/Berlin" or "UTC".',
  },
  {
    what: "a time zone for a period",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "1d", timeZone: "Europe/Berlin" });',
    sentence:
      'Schedule "nightly" has timeZone with every, but timeZone belongs to cron; every does not depend on a zone.',
  },
  {
    what: "a period of milliseconds",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "10ms" });',
    sentence: 'Schedule "nightly" has an every of 10 ms; the shortest period is one second.',
  },
  {
    what: "a period in words",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "an hour" });',
    sentence:
      'Schedule "nightly": the every "an hour" is not a duration; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "an offset that is longer than the period",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "5m", offset: "1h" });',
    sentence: 'Schedule "nightly" has an offset of 3600000 ms, which must be less than every (300000 ms).',
  },
  {
    what: "a date without its zone",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, at: ["2026-12-24 18:00"] });',
    sentence:
      'Schedule "nightly" has "2026-12-24 18:00" in at[0], which has no zone; write a Date or a text such as "2026-12-24T18:00:00Z" or "2026-12-24T18:00:00+01:00".',
  },
  {
    what: "an end before the start",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "5m", startAt: "2027-01-01T00:00Z", endAt: "2026-01-01T00:00Z" });',
    sentence: 'Schedule "nightly" never fires: its endAt is before its startAt.',
  },
  {
    what: "a jitter that is longer than the period",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "5m", jitter: "10m" });',
    sentence:
      'Schedule "nightly": a jitter of 600000 ms is not less than the shortest time between two occurrences, 300000 ms.',
  },
  {
    what: "an overlap policy that does not exist",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "5m", overlap: "queue" });',
    compiler: `Type '"queue"' is not assignable to type 'Overlap | undefined'.`,
  },
  {
    what: "a catch-up mode that does not exist",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "5m", catchUp: "everything" });',
    compiler: `Type '"everything"' is not assignable to type`,
  },
  {
    what: "a pause after zero failures",
    code: 'schedule("nightly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "5m", pauseOnFailure: 0 });',
    sentence: 'Schedule "nightly": pauseOnFailure is a whole number above 0, not 0.',
  },
  {
    what: "a schedule without a name",
    code: 'schedule("", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "5m" });',
    sentence: 'The schedule name "" must not be empty; choose another.',
  },
  {
    what: "a workflow among the schedules",
    code: "pawl.worker({ workflows: [order], schedules: [order] });",
    compiler: "is missing the following properties from type 'ScheduleDefinition'",
  },
  {
    what: "a workflow among the schedules, from untyped code",
    code: `const exported: any[] = [order];
pawl.worker({ workflows: [order], schedules: exported });`,
    sentence:
      'schedules[0] is not a schedule but the workflow "order"; make one with schedule(name, { workflow, cron }). To take the schedules from all exports of a module, use discoverSchedules(module).',
  },
  {
    what: "one schedule in place of a list, from untyped code",
    code: `const hourly: any = schedule("hourly", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "1h" });
pawl.worker({ workflows: [order], schedules: hourly });`,
    sentence: "`schedules` of a worker must be a list of what schedule(name, options) returns: schedules: [nightly].",
  },
  {
    what: "two schedules with one name",
    code: `const every = (period: string) => schedule("same", { workflow: order, input: { sku: "A-1", cents: 1 }, every: period });
pawl.worker({ workflows: [order], schedules: [every("1h"), every("2h")] });`,
    sentence: 'Two different schedules are called "same"; give one another name.',
  },
  {
    what: "a function as the input of a schedule that is put",
    code: 'await pawl.schedules.put("a", { workflow: "order", input: () => 1, every: "1h" });',
    sentence:
      'The input of schedule "a" must be a value: a function cannot be stored. Declare the schedule in code with schedule("a", …) instead.',
  },
  {
    what: "a schedule that does not exist",
    code: 'await pawl.schedules.get("nightly");',
    sentence: 'Schedule "nightly" does not exist; put it with schedules.put(), or start a worker that declares it.',
  },
  {
    what: "no instants at all",
    code: 'schedule("a", { workflow: order, input: { sku: "A-1", cents: 1 }, every: "1h" }).next(0, 0);',
    sentence: "next(count) takes a whole number from 1 to 10,000, not 0.",
  },
  {
    what: "a misspelt option of pause",
    code: 'await pawl.schedules.pause("nightly", { because: "it rains" });',
    compiler: "Object literal may only specify known properties, and 'because' does not exist in type",
  },
  {
    what: "a misspelt option of pause, from untyped code",
    code: `const options: any = { because: "it rains" };
await pawl.schedules.pause("nightly", options);`,
    sentence: 'schedules.pause() has no option "because"; its options are by, reason, until.',
  },
  {
    what: "a backfill that does not say since when",
    code: 'await pawl.schedules.backfill("nightly", {});',
    compiler: "Property 'from' is missing in type",
  },
  {
    what: "a cursor of another list",
    code: 'await pawl.schedules.occurrences("nightly", { cursor: "x" });',
    sentence: "schedules.occurrences({ cursor }) must be the `next` of another page.",
  },
  {
    what: "a page of no schedules",
    code: "await pawl.schedules.list({ limit: 0 });",
    sentence: "schedules.list() takes a limit between 1 and 1000, not 0.",
  },
  {
    what: "an application without a name",
    code: 'await connect("memory:", { app: "" });',
    sentence: 'The name of the application "" must not be empty; choose another.',
  },
];
