/** What several routes share: parameters of queries and bodies, and the reading of values. */
import { decode } from "../../core/encoding/decode.js";
import type { CommandOptions, RunHandle } from "../../index.js";
import { HttpError } from "../problem.js";
import type { Call } from "../route.js";
import {
  duration,
  durationOrInstant,
  flag,
  instant,
  integer,
  list,
  object,
  oneOf,
  optional,
  payload,
  text,
} from "../schema.js";
import { heroSchema } from "../views/run-view.js";

/** Payloads that are larger are left out of lists, unless the request allows more. */
export const listedPayloadBytes = 16 * 1024;

/** Reads a value of the user: JSON, with the tags of the log for what JSON cannot express. */
export const readValue = (json: unknown): unknown => withinStack(() => decode(JSON.stringify(json)));

/** The JSON of a value as text again. */
export const jsonText = (json: unknown): string => withinStack(() => JSON.stringify(json));

/** `JSON.parse` takes any depth, but what walks through its result uses the stack. */
function withinStack<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof RangeError) throw new HttpError(400, "BAD_REQUEST", "A value is nested too deeply.");
    throw error;
  }
}

const valueDescription =
  'Plain values are written as JSON, others as in the log: `{"$pawl":"Date","v":"2026-01-31T09:00:00.000Z"}`.';

/** The handle of the run that the path names. */
export const runOf = ({ pawl, params }: Pick<Call, "pawl" | "params">): RunHandle => pawl.run(params.run as string);

/** The parameters of all routes that return payloads. */
export const payloadParameters = {
  plain: optional(flag("Lossy plain JSON for people instead of tagged JSON.")),
  maxPayload: optional(integer("Payloads whose JSON has more bytes are left out.", 0)),
};

export const auditFields = {
  by: optional(text("Who gives the command. Ignored if the server knows the user.", { maxLength: 200 })),
  reason: optional(text("Why; the log of the run records it.", { maxLength: 4_000 })),
};

export const commandFields = {
  ...auditFields,
  ifLastEvent: optional(
    integer("Refuses the command with 409 unless this is still the number of the last event in the run's log.", 0),
  ),
};

/** The name that the log records: that of the authorized user, which the body cannot change. */
export function auditOf({
  user,
  body,
}: Pick<Call, "user"> & {
  readonly body: { readonly by?: string | undefined; readonly reason?: string | undefined };
}): Pick<CommandOptions, "by" | "reason"> {
  const by = user ?? body.by;
  return { ...(by === undefined ? {} : { by }), ...(body.reason === undefined ? {} : { reason: body.reason }) };
}

/** Who did something and why, for the log of the process: "ada (the disk is full)". */
export function operatorOf(call: Parameters<typeof auditOf>[0]): string {
  const { by = "an operator", reason } = auditOf(call);
  return reason === undefined ? by : `${by} (${reason})`;
}

export function commandOptionsOf(
  call: Pick<Call, "user"> & {
    readonly body: { readonly by?: string; readonly reason?: string; readonly ifLastEvent?: number };
  },
): CommandOptions {
  const { ifLastEvent } = call.body;
  return { ...auditOf(call), ...(ifLastEvent === undefined ? {} : { ifLastEvent }) };
}

/** Options of all starts. */
export const startFields = {
  ...auditFields,
  allowMultiple: optional(flag("Allows several active runs for one hero.")),
  delay: optional(duration("Starts the run after this time.")),
  startAt: optional(instant("Starts the run at this instant.")),
  startBy: optional(durationOrInstant("Cancels the run with the code EXPIRED if it has not begun by then.")),
  priority: optional(integer("Workers claim runs with a higher priority first.", -2_147_483_648, 2_147_483_647)),
  tags: optional(list("Tags in addition to those of the workflow.", text("A tag.", { maxLength: 200 }), 100)),
};

export const keyedStartFields = {
  ...startFields,
  idempotencyKey: optional(text("Starts the workflow once for this key. The header Idempotency-Key is the same.")),
  hero: optional(heroSchema),
  onConflict: optional(
    oneOf("What becomes of a start whose idempotency key was used before, or whose hero has an active run.", [
      ...["attach", "fail", "queue", "cancelOther", "replace"],
    ]),
  ),
};

export const emptyBody = object("", {});

export const valueField = (what: string) => payload(`${what} ${valueDescription}`);
