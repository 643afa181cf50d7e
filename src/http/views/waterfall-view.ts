/** The waterfall of a run, in JSON. */
import {
  rowKinds,
  rowStates,
  spanKinds,
  type WaterfallRow,
  type WaterfallSpan,
  waitCauses,
} from "../../client/inspect/waterfall/rows.js";
import type { Waterfall } from "../../client/inspect/waterfall/waterfall.js";
import type { PayloadWriter } from "../payload-writer.js";
import { flag, integer, list, named, nullable, object, oneOf, text, time } from "../schema.js";
import type { AboutRun } from "./log-views.js";

const spanSchema = named(
  "WaterfallSpan",
  object("What a part of a run did for a while.", {
    kind: oneOf(
      "queue: no worker had taken it. execution: code was running. wait: see `waitsFor`. pause: the run was paused. lost: the worker died.",
      spanKinds,
    ),
    waitsFor: nullable(oneOf("What a wait ends with.", waitCauses)),
    state: oneOf("The state at its end, or the present one.", rowStates),
    outcome: nullable(text("How it ended.")),
    attempt: nullable(integer("The number of the attempt.", 0)),
    worker: nullable(text("The name of the worker, where the log has it.")),
    from: time("When it began."),
    to: nullable(time("When it ended; null: it has not.")),
    dueAt: nullable(time("When a wait is over if nothing else happens.")),
    isCut: flag("It began before the first event of the window."),
    reason: nullable(text("Why the run was paused.", { maxLength: 50_000 })),
    count: integer("How many spans of a group this one stands for.", 1),
  }),
);

const rowSchema = named(
  "WaterfallRow",
  object("A step, a wait or a child of a run, or several with similar names, with their spans.", {
    id: text("Identifies the row.", { maxLength: 20_000 }),
    node: nullable(text("The key of the step, wait or child in the log.", { maxLength: 20_000 })),
    name: text("Its name; in a group, a star stands for numbers.", { maxLength: 20_000 }),
    kind: oneOf("What it is.", rowKinds),
    depth: integer("How deep it is nested: the calls of a declared step are one below it.", 0),
    state: oneOf("Its state. pending: it is still to come.", rowStates),
    attempts: integer("The number of the latest attempt; 0: it has none.", 0),
    detail: nullable(text("The names of signals, the choice of a branch, or the job to come.", { maxLength: 20_000 })),
    child: nullable(
      object("The run that it started.", {
        runId: nullable(text("The id of the run, unless there are several.")),
        workflow: text("The workflow of the run."),
      }),
    ),
    group: nullable(
      object("Set if the row stands for several.", {
        id: text("What `expand` takes.", { maxLength: 20_000 }),
        count: integer("How many there are.", 0),
        ended: integer("How many have ended.", 0),
        failed: integer("How many have failed.", 0),
        pending: integer("How many have not begun.", 0),
      }),
    ),
    spans: list("What it did, in order.", spanSchema),
  }),
);

export const waterfallSchema = object("", {
  now: time("The clock of the database."),
  from: time("The beginning of the time that the rows cover."),
  to: time("Its end: the end of the run or of the window, otherwise the present."),
  firstEvent: nullable(integer("The number of the first event of the window.", 1)),
  lastEvent: nullable(integer("The number of the last event of the window.", 1)),
  hasEarlier: flag("The log has events before the window."),
  hasLater: flag("The log has events after the window; the rows then show the run as of its last event."),
  rows: list("The run itself, then its parts by their starts, then what is still to come.", rowSchema),
});

export function waterfallView(waterfall: Waterfall, writer: PayloadWriter, about: AboutRun) {
  const rowView = (row: WaterfallRow) => ({
    ...row,
    // The choice of a branch is a result of the user's code; signals and jobs are names in the code.
    detail: row.kind === "branch" ? writer.text(row.detail, { ...about, name: row.name }) : row.detail,
    spans: row.spans.map((span) => spanView(span, writer, about)),
  });
  return {
    ...waterfall,
    now: toIso(waterfall.now),
    from: toIso(waterfall.from),
    to: toIso(waterfall.to),
    rows: waterfall.rows.map(rowView),
  };
}

const spanView = (span: WaterfallSpan, writer: PayloadWriter, about: AboutRun) => ({
  ...span,
  from: toIso(span.from),
  to: span.to === null ? null : toIso(span.to),
  dueAt: span.dueAt === null ? null : toIso(span.dueAt),
  reason: writer.text(span.reason, about),
});

const toIso = (at: number) => new Date(at).toISOString();
