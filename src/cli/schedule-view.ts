/** Draws schedules for the terminal: the list, one schedule with its ledger, its next instants. */
import type { OccurrenceInfo, ScheduleInfo } from "../client/schedules/schedule-info.js";
import { describeInstant, type LocalInstant } from "../core/schedule/local-time.js";
import { formatCount } from "./format-count.js";
import { jsonOf } from "./json.js";
import type { Output } from "./output.js";
import { type Colour, colourOf } from "./paint.js";
import { type Cell, type Column, printable, table, truncate } from "./table.js";
import { absoluteAndRelativeTime, clock, durationText, relativeTime } from "./times.js";

type Outcome = OccurrenceInfo["outcome"];

interface OutcomeSign {
  /** Its letter in the strip of outcomes. */
  readonly sign: string;
  readonly text: string;
  readonly colour: Colour;
}

const signs: Readonly<Record<Outcome, OutcomeSign>> = {
  ran: { sign: "✓", text: "ran", colour: "green" },
  buffered: { sign: "…", text: "waits", colour: "cyan" },
  requested: { sign: "…", text: "waits for a worker", colour: "cyan" },
  skipped_overlap: { sign: "o", text: "skipped, a run was open", colour: "yellow" },
  skipped_late: { sign: "l", text: "skipped, too late", colour: "yellow" },
  skipped_buffer_full: { sign: "f", text: "skipped, too many waited", colour: "yellow" },
  paused: { sign: "p", text: "paused", colour: "dim" },
  retired: { sign: "r", text: "retired", colour: "dim" },
  failed_to_start: { sign: "✗", text: "failed to start", colour: "red" },
};

export function drawSchedules(schedules: readonly ScheduleInfo[], out: Output): string[] {
  const now = out.now();
  const isAnyLate = schedules.some(({ lateMs }) => lateMs > 0);
  const rows = schedules.map((schedule): Cell[] => {
    const { name, workflow, rule, status, nextAt, lateMs, last } = schedule;
    return [
      name,
      workflow,
      rule,
      { text: status, colour: colourOf(status) },
      nextAt === null ? "" : relativeTime(nextAt, now),
      ...(isAnyLate ? [lateText(lateMs)] : []),
      last === null
        ? ""
        : { text: `${signs[last.outcome].text} ${relativeTime(last.at, now)}`, colour: signs[last.outcome].colour },
    ];
  });
  return table(columnsWith(isAnyLate), rows, { columns: out.columns, paint: out.paint, cutWhole: out.isTerminal });
}

const lateText = (lateMs: number): Cell => (lateMs === 0 ? "" : { text: durationText(lateMs), colour: "yellow" });

/** Nothing is late as a rule, and then the other columns need the room. */
const columnsWith = (late: boolean): readonly Column[] => [
  { title: "name", whole: true },
  { title: "workflow" },
  { title: "rule" },
  { title: "status", whole: true },
  { title: "next" },
  ...(late ? [{ title: "late", align: "right" } as const] : []),
  { title: "last" },
];

export interface NextInstant extends LocalInstant {
  readonly at: Date;
}

export interface ScheduleView {
  readonly schedule: ScheduleInfo;
  readonly next: readonly NextInstant[];
  /** The newest first. */
  readonly occurrences: readonly OccurrenceInfo[];
}

export function drawSchedule({ schedule, next, occurrences }: ScheduleView, out: Output): string[] {
  const { paint } = out;
  const isOver = schedule.status === "ended" || schedule.status === "retired";
  return [
    `${paint("bold", printable(schedule.name))}  ${paint(colourOf(schedule.status), schedule.status)}`,
    ...factsOf(schedule, out.now()).flatMap(([name, text]) =>
      text === null ? [] : [`  ${paint("dim", name.padEnd(9))}  ${printable(text)}`],
    ),
    ...(isOver || next.length === 0
      ? []
      : ["", paint("bold", "next"), ...drawInstants(next, out).map((line) => `  ${line}`)]),
    ...drawLedger(occurrences, out),
  ];
}

function factsOf(schedule: ScheduleInfo, now: number): (readonly [string, string | null])[] {
  const { nextAt, nextFor, lateMs, catchUp, openRuns, waiting, backfillWaiting, status } = schedule;
  const counts = [
    openRuns === 0 ? null : `${formatCount(openRuns, "run")} open`,
    waiting === 0 ? null : `${waiting.toLocaleString("en")} waiting`,
    backfillWaiting === 0 ? null : `${backfillWaiting.toLocaleString("en")} of backfills waiting`,
  ].filter((part) => part !== null);
  const isDelayed = status === "active" && nextFor !== null && nextAt !== null && nextAt.getTime() > nextFor.getTime();
  const jitter = isDelayed ? `, for ${clock(nextFor, now)}` : "";
  const within = catchUp.withinMs === null ? "" : `, if it is late by at most ${durationText(catchUp.withinMs)}`;
  return [
    ["workflow", schedule.workflow],
    ["rule", schedule.rule],
    ["app", schedule.app],
    ["next", nextAt === null || status === "paused" ? null : `${absoluteAndRelativeTime(nextAt, now)}${jitter}`],
    ["late", lateMs === 0 ? null : durationText(lateMs)],
    ["paused", pauseText(schedule, now)],
    ["runs", counts.length === 0 ? null : counts.join(", ")],
    ["input", schedule.computesInput ? "computed by code" : shortJson(schedule.input)],
    ["overlap", schedule.overlap],
    ["catch-up", `${catchUp.mode}${within}`],
    ["jitter", schedule.jitterMs === 0 ? null : `up to ${durationText(schedule.jitterMs)}`],
    ["failures", failuresText(schedule)],
    ["ends", endText(schedule)],
    ["created", absoluteAndRelativeTime(schedule.createdAt, now)],
  ];
}

const maxValueLength = 200;
const shortJson = (value: unknown) => (value === undefined ? null : truncate(jsonOf(value), maxValueLength));

function pauseText({ pausedAt, pausedUntil, pausedBy, pauseReason }: ScheduleInfo, now: number): string | null {
  if (pausedAt === null) return null;
  const by = pausedBy === null ? "" : ` by ${pausedBy}`;
  const until = pausedUntil === null ? "" : `, until ${absoluteAndRelativeTime(pausedUntil, now)}`;
  return `${absoluteAndRelativeTime(pausedAt, now)}${by}${until}${pauseReason === null ? "" : `: ${pauseReason}`}`;
}

function failuresText({ failedInARow, pauseOnFailure }: ScheduleInfo): string | null {
  const limit = pauseOnFailure === null ? "" : `; it pauses after ${pauseOnFailure}`;
  return failedInARow === 0 && limit === "" ? null : `${failedInARow} in a row${limit}`;
}

const endText = ({ maxRuns, acceptedRuns }: ScheduleInfo) =>
  maxRuns === null ? null : `after ${formatCount(maxRuns, "run")}; ${acceptedRuns.toLocaleString("en")} so far`;

export function drawInstants(instants: readonly NextInstant[], { now, paint, columns, isTerminal }: Output): string[] {
  const rows = instants.map(({ at, local, offset, transitionDay }): Cell[] => [
    `${local} ${offset}`,
    relativeTime(at, now()),
    transitionDay ? { text: "the clocks change on this day", colour: "yellow" } : "",
  ]);
  const titles = [{ title: "", whole: true }, { title: "" }, { title: "" }] as const;
  return table(titles, rows, { columns, paint, cutWhole: isTerminal });
}

/** How many rows of the ledger are described one by one. */
const describedRows = 10;

function drawLedger(occurrences: readonly OccurrenceInfo[], out: Output): string[] {
  const { paint, now } = out;
  if (occurrences.length === 0) return [];
  const strip = occurrences
    .toReversed()
    .map(({ outcome, count }) =>
      paint(signs[outcome].colour, `${signs[outcome].sign}${count === 1 ? "" : `×${count}`}`),
    );
  const shown = new Set(occurrences.map(({ outcome }) => outcome));
  const legend = [...new Map([...shown].map((outcome) => [signs[outcome].sign, signs[outcome].text]))];
  const rows = occurrences.slice(0, describedRows).map((occurrence): Cell[] => {
    const { scheduledFor, outcome, count, latenessMs, runId } = occurrence;
    return [
      `  ${clock(scheduledFor, now())}${count === 1 ? "" : ` and ${count - 1} more`}`,
      { text: signs[outcome].text, colour: signs[outcome].colour },
      latenessMs === null || latenessMs === 0 ? "" : `${durationText(latenessMs)} late`,
      [runId ?? "", noteOf(occurrence)].filter(Boolean).join("  "),
    ];
  });
  // A reason or an error may be long: on a terminal it is cut, and elsewhere nothing is.
  const titles = [
    { title: "", whole: true },
    { title: "", whole: true },
    { title: "", align: "right", whole: true },
    { title: "", whole: true },
  ] as const;
  return [
    "",
    `${paint("bold", "ledger")}  ${paint("dim", "the latest is on the right")}`,
    `  ${strip.join("")}`,
    `  ${paint("dim", legend.map(([sign, text]) => `${sign} ${text}`).join(" · "))}`,
    "",
    ...table(titles, rows, { columns: out.columns, paint, cutWhole: out.isTerminal }),
  ];
}

function noteOf({ missed, manual, backfill, error, by, reason }: OccurrenceInfo): string {
  const how = manual ? "triggered" : backfill ? "backfill" : null;
  const who = by === null ? null : `by ${by}`;
  const stands = missed === 0 ? null : `for ${missed.toLocaleString("en")} more`;
  return [[how, who].filter((part) => part !== null).join(" ") || null, stands, reason, error]
    .filter((part) => part !== null)
    .join(" · ");
}

const maxListedInstants = 20;

export function drawBackfill(instants: readonly Date[], timeZone: string): string[] {
  const lines = instants.slice(0, maxListedInstants).map((instant) => {
    const { local, offset } = describeInstant(timeZone, instant.getTime());
    return `  ${local} ${offset}`;
  });
  const hidden = instants.length - lines.length;
  return hidden === 0 ? lines : [...lines, `  … and ${hidden.toLocaleString("en")} more; --json lists all of them`];
}

/** What became of a triggered occurrence. */
export function triggerSentence({ outcome, schedule, runId, error }: OccurrenceInfo): string {
  if (outcome === "ran") return `Started run ${runId}.`;
  if (outcome === "buffered") return `A run of "${schedule}" is open; this one starts when that has ended.`;
  if (outcome === "requested")
    return `A worker that has the code of "${schedule}" computes its input and starts the run.`;
  if (outcome === "skipped_overlap") return `A run of "${schedule}" is open; --force starts another one.`;
  if (outcome === "failed_to_start") return `The run of "${schedule}" could not be started: ${error}`;
  return `No run was started: ${signs[outcome].text}.`;
}
