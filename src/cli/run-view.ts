/** Draws one run for the terminal: its facts, its steps over time, what it waits for, its last error. */
import type { ExecutionInfo } from "../client/inspect/executions.js";
import type { Explanation } from "../client/inspect/explanation.js";
import type { NodeInfo } from "../client/inspect/nodes.js";
import type { ProgressInfo } from "../client/inspect/progress.js";
import type { RunInfo } from "../client/inspect/run-info.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import { formatCount } from "./format-count.js";
import { jsonOf } from "./json.js";
import type { Output } from "./output.js";
import { colourOf } from "./paint.js";
import { type Cell, printable, table, truncate } from "./table.js";
import { bar, scaleOf } from "./timeline.js";
import { absoluteAndRelativeTime, durationText, relativeTime, shortenTimestamps } from "./times.js";

type Execution = Pick<
  ExecutionInfo,
  "step" | "attempt" | "state" | "outcome" | "scheduledFor" | "startedAt" | "finishedAt" | "error"
>;

type Run = Pick<
  RunInfo,
  | "id"
  | "workflow"
  | "version"
  | "status"
  | "queue"
  | "priority"
  | "hero"
  | "parentId"
  | "tags"
  | "idempotencyKey"
  | "schedule"
  | "gathered"
  | "createdAt"
  | "startedAt"
  | "finishedAt"
  | "input"
  | "output"
  | "error"
>;

export interface RunView {
  readonly info: Run;
  readonly executions: readonly Execution[];
  /** The nodes that the workflow declares; those that have not started have no execution yet. */
  readonly nodes: readonly Pick<NodeInfo, "name" | "state">[];
  readonly progress: readonly ProgressInfo[];
  readonly explanation: Explanation;
}

/** How many executions are drawn; a loop may have thousands. */
const maxDrawnRows = 40;

export function drawRun(view: RunView, out: Output, showAll: boolean): string[] {
  return [
    ...drawHeader(view.info, out),
    ...drawSteps(view, out, showAll),
    ...drawProgress(view.progress, out),
    ...drawState(view, out),
  ];
}

function drawHeader(info: Run, { paint, now }: Output): string[] {
  const { workflow, version, status, createdAt, startedAt, finishedAt } = info;
  const took = startedAt === null || finishedAt === null ? null : finishedAt.getTime() - startedAt.getTime();
  const isOwnQueue = info.queue === workflow;
  const facts: [string, string | null][] = [
    ["run", info.id],
    ["hero", info.hero === null ? null : `${info.hero.type} ${info.hero.id}`],
    ["parent", info.parentId],
    ["queue", isOwnQueue ? null : info.queue],
    ["priority", info.priority === 0 ? null : String(info.priority)],
    ["tags", info.tags.length === 0 ? null : info.tags.join(", ")],
    ["key", info.idempotencyKey],
    ["schedule", scheduleText(info, now())],
    ["gathered", gatheredText(info, now())],
    ["created", absoluteAndRelativeTime(createdAt, now())],
    [
      "ended",
      finishedAt === null
        ? null
        : `${absoluteAndRelativeTime(finishedAt, now())}${took === null ? "" : `, took ${durationText(took)}`}`,
    ],
    ["input", inputOf(info)],
    ["output", status === "completed" ? shortJson(info.output) : null],
  ];
  const title = `${workflow}${version === "" ? "" : ` ${version}`}`;
  return [
    `${paint("bold", printable(title))}  ${paint(colourOf(status), status)}`,
    ...facts.flatMap(([name, text]) =>
      text === null ? [] : [`  ${paint("dim", name.padEnd(8))}  ${printable(text)}`],
    ),
  ];
}

function scheduleText({ schedule }: Run, now: number): string | null {
  if (schedule === null) return null;
  const { name, scheduledFor, missed, manual, backfill } = schedule;
  const how = manual ? "triggered" : backfill ? "of a backfill" : null;
  const parts = [
    `${name}, for ${absoluteAndRelativeTime(scheduledFor, now)}`,
    how,
    missed === 0 ? null : `also for ${missed.toLocaleString("en")} that did not run`,
  ];
  return parts.filter((part) => part !== null).join(", ");
}

function gatheredText({ gathered }: Run, now: number): string | null {
  if (gathered === null) return null;
  const { by, key, starts, lastAt, position } = gathered;
  const what = by === "batch" ? "batch of" : "debounced,";
  const ofKey = key === "" ? "" : ` with the key ${key}`;
  const which = position === null ? "" : `, of which this is number ${position + 1}`;
  return `${what} ${formatCount(starts, "start")}${ofKey}, the last ${absoluteAndRelativeTime(lastAt, now)}${which}`;
}

/** The input of a run that was built at run time is its whole graph, which is too long to show here. */
function inputOf({ id, input }: Run): string | null {
  const { version, signature, frozen_at, nodes } = (input ?? {}) as Partial<FrozenDag>;
  const isGraph = version === 1 && signature !== undefined && frozen_at !== undefined && typeof nodes === "object";
  if (!isGraph || nodes === null) return shortJson(input);
  return `a graph of ${formatCount(Object.keys(nodes).length, "node")}; all of it: pawl dag export ${id}`;
}

const maxValueLength = 200;
const shortJson = (value: unknown) => (value === undefined ? null : truncate(jsonOf(value), maxValueLength));

function drawSteps({ executions, nodes }: RunView, out: Output, showAll: boolean): string[] {
  const notStartedNodes = nodes.filter(({ state }) => state === "pending");
  if (executions.length + notStartedNodes.length === 0) return [];
  const { paint, now, columns } = out;
  const shownExecutions = showAll ? executions : executions.slice(-maxDrawnRows);
  const hiddenCount = executions.length - shownExecutions.length;
  const scale = scaleOf(shownExecutions, columns >= 100 ? 30 : 16, now());
  const rows = shownExecutions.map((execution): Cell[] => [
    `  ${execution.step}`,
    execution.attempt === 1 ? "" : `#${execution.attempt}`,
    { text: stateLabel(execution), colour: colourOf(execution.state) },
    timeOf(execution, now()),
    { text: bar(execution, scale, now()), colour: colourOf(execution.state) },
    execution.error === null ? "" : { text: execution.error.message, colour: "red" },
  ]);
  const shownNodes = showAll ? notStartedNodes : notStartedNodes.slice(0, maxDrawnRows);
  for (const { name } of shownNodes)
    rows.push([`  ${name}`, "", { text: "not started", colour: colourOf("pending") }, "", "", ""]);
  const hiddenNodeCount = notStartedNodes.length - shownNodes.length;
  const titles = [
    { title: "" },
    { title: "" },
    { title: "" },
    { title: "", align: "right" },
    { title: "", whole: true },
    { title: "", spareFrom: 10 },
  ] as const;
  return [
    "",
    paint("bold", "steps"),
    ...(hiddenCount === 0 ? [] : [paint("dim", `  … ${hiddenCount} earlier; --all shows them`)]),
    ...table(titles, rows, { columns, paint, cutWhole: out.isTerminal }),
    ...(hiddenNodeCount === 0 ? [] : [paint("dim", `  … ${hiddenNodeCount} more not started; --all shows them`)]),
  ];
}

/** The outcomes that tell the user more than the state of the execution does. */
const outcomeLabels: Readonly<Record<string, string>> = {
  abandoned: "abandoned",
  continued: "continued",
  reattempted: "reattempted",
  timed_out: "timed out",
  workflow_paused: "paused",
};

const stateLabel = ({ state, outcome }: Execution) => outcomeLabels[outcome ?? ""] ?? state;

function timeOf({ state, startedAt, finishedAt, scheduledFor }: Execution, now: number): string {
  if (state === "scheduled") return scheduledFor === null ? "" : relativeTime(scheduledFor, now);
  if (startedAt === null) return "";
  return durationText((finishedAt?.getTime() ?? now) - startedAt.getTime());
}

function drawProgress(rows: readonly ProgressInfo[], { paint }: Output): string[] {
  if (rows.length === 0) return [];
  const lines = rows.map(({ node, done, total, message, rate, etaMs }) => {
    const parts = [
      total === null ? `${done}` : `${done} of ${total}`,
      rate === null ? null : `${Math.round(rate)}/s`,
      etaMs === null || etaMs === 0 ? null : `${durationText(etaMs)} left`,
      message,
    ];
    return `  ${printable([node || "run", parts.filter((part) => part !== null).join(", ")].join("  "))}`;
  });
  return ["", paint("bold", "progress"), ...lines];
}

/** Explains why the run is in its state; a completed run needs no explanation. */
function drawState({ info, executions, explanation }: RunView, { paint, now }: Output): string[] {
  if (info.status === "completed") return [];
  const error = info.error ?? findUnresolvedError(executions);
  const lines = explanation.because === "ended" ? [] : ["", shortenTimestamps(printable(explanation.text), now())];
  if (error === null) return lines;
  const [label, errorText] =
    info.status === "canceled" && info.error !== null ? ["canceled", error.message] : ["last error", errorLine(error)];
  return [...lines, "", `${paint("red", label)}  ${printable(errorText)}`];
}

/** Returns the last error of a step that has not completed or been skipped since. */
function findUnresolvedError(executions: readonly Execution[]): Error | null {
  const recoveredSteps = new Set<string>();
  for (const { step, state, error } of executions.toReversed()) {
    if (state === "completed" || state === "skipped") recoveredSteps.add(step);
    if (error !== null && !recoveredSteps.has(step)) return error;
  }
  return null;
}

const errorLine = ({ name, message }: Error) => `${name}: ${message}`;
