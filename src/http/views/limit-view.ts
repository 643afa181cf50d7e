/** Limits and their lanes in JSON. */
import type { LaneInfo, LimitDetails, LimitedBy, LimitInfo, LimitOverrideInfo, SlotHolder } from "../../index.js";
import type { PayloadWriter } from "../payload-writer.js";
import { flag, integer, list, named, nullable, object, oneOf, optional, text, time } from "../schema.js";
import { isoOrNull } from "./run-view.js";

const concurrencySchema = (description: string) => nullable(integer(`${description} null: any number.`, 0));

const rateSchema = (description: string) =>
  nullable(
    object(`${description} null: any number.`, {
      limit: integer("How many may begin in the time.", 1),
      perMs: integer("The time in milliseconds.", 1),
      burst: integer("How many may begin at once, in addition to the first.", 0),
    }),
  );

const inForceSchema = object("What is in force at the moment: the values of the code, or those of the override.", {
  concurrency: concurrencySchema("How many slots each key has."),
  rate: rateSchema("How many may begin in a time."),
});

const overrideSchema = nullable(
  object("What was put in force in place of the values of the code; null: nothing.", {
    concurrency: optional(concurrencySchema("The slots of each key; absent: as in the code.")),
    rate: optional(rateSchema("The rate; absent: as in the code.")),
    until: nullable(time("When it ends; null: when it is cleared.")),
    reason: nullable(text("Why it was set.", { maxLength: 5_000 })),
    by: nullable(text("Who set it.")),
    at: time("When it was set."),
  }),
);

const infoFields = {
  name: text("The name of the limit."),
  concurrency: concurrencySchema("How many slots each key has, as the code says."),
  rate: rateSchema("How many may begin in a time, as the code says."),
  while: oneOf("While which time a run holds its slot.", ["executing", "open"]),
  onFull: oneOf("What becomes of a run that has not begun and finds no free slot.", [
    "wait",
    "skip",
    "fail",
    "cancelOldest",
  ]),
  backlog: nullable(integer("How many runs of one key may wait before `onFull` applies; null: any number.", 0)),
  override: overrideSchema,
  inForce: inForceSchema,
  inUse: integer("How many slots are held, of all keys together.", 0),
  inUseCapped: flag("Whether more slots are held: 10,000 are counted."),
  waiting: integer(
    "How many runs and steps wait, of all keys together. A run that needs several limits is counted for the one that was full.",
    0,
  ),
  waitingCapped: flag("Whether more wait: the runs of some hundred keys are counted, 1,000 of each key."),
  createdAt: time("When a worker registered it for the first time."),
};

export const limitSchema = named("Limit", object("A limit.", infoFields));

const holderSchema = object("A run that holds a slot, or whose step does.", {
  runId: text("The id of the run."),
  step: nullable(text("The step that holds the slot; null: the run holds it.")),
  since: time("Since when."),
});

const laneSchema = object("The part of a limit that belongs to one key.", {
  key: text('The key; "" for a limit without one.', { maxLength: 1_000 }),
  inUse: integer("How many slots are held.", 0),
  holders: list("Those that hold them, at most 20, the longest held first.", holderSchema),
  waiting: integer("How many runs and steps wait, counted up to 1,000.", 0),
  waitingCapped: flag("Whether more wait."),
  nextAt: nullable(time("When the rate lets the next one begin, or an override ends; null if nothing waits for that.")),
});

export const limitDetailsSchema = named(
  "LimitDetails",
  object("A limit with a page of its keys.", {
    ...infoFields,
    lanes: list("The keys with slots in use or with waiting runs, ordered by key.", laneSchema),
    next: nullable(text("The `cursor` of the next page; null: this is the last page.")),
  }),
);

export const limitedSchema = object("The limit that the run waits for; absent for other reasons.", {
  limit: text("The name of the limit."),
  key: text('The key; "" for a limit without one.', { maxLength: 1_000 }),
  step: nullable(text("The step that waits for the slot; null: the run waits.")),
  inUse: integer("How many slots of the key are held, counted up to 1,000.", 0),
  inForce: inForceSchema,
  override: overrideSchema,
  holders: list("Those that hold them, at most 20.", holderSchema),
  position: nullable(
    integer("Its place among those that wait, an estimate: 1 is next. null if more than 500 come before it.", 1),
  ),
  waiting: integer("How many wait for the key, with this one; counted up to 1,000.", 0),
  earliestAt: nullable(time("When the rate lets it begin at the earliest; null if it waits for a slot that is held.")),
});

const overrideView = (override: LimitOverrideInfo | null, writer: PayloadWriter) =>
  override === null
    ? null
    : {
        ...override,
        until: isoOrNull(override.until),
        reason: writer.text(override.reason, {}),
        at: override.at.toISOString(),
      };

const holderView = ({ since, ...holder }: SlotHolder) => ({ ...holder, since: since.toISOString() });

const laneView = (lane: LaneInfo) => ({
  ...lane,
  holders: lane.holders.map(holderView),
  nextAt: isoOrNull(lane.nextAt),
});

export const limitView = (limit: LimitInfo, writer: PayloadWriter) => ({
  ...limit,
  override: overrideView(limit.override, writer),
  createdAt: limit.createdAt.toISOString(),
});

export const limitDetailsView = (limit: LimitDetails, writer: PayloadWriter) => ({
  ...limitView(limit, writer),
  lanes: limit.lanes.map(laneView),
  next: limit.next,
});

export const limitedView = (limited: LimitedBy, writer: PayloadWriter) => ({
  ...limited,
  override: overrideView(limited.override, writer),
  holders: limited.holders.map(holderView),
  earliestAt: isoOrNull(limited.earliestAt),
});
