/** One run for people: what it is, what its steps did when, what it waits for, what went wrong last. */
import type { ExecutionInfo } from "../client/inspect/executions.js";
import type { Explanation } from "../client/inspect/explain.js";
import type { NodeInfo } from "../client/inspect/nodes.js";
import type { ProgressInfo } from "../client/inspect/progress.js";
import type { RunInfo } from "../client/inspect/run-info.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import { count } from "./counting.js";
import { jsonOf } from "./json.js";
import type { Output } from "./output.js";
import { colourOf } from "./paint.js";
import { type Cell, cut, printable, table } from "./table.js";
import { bar, scaleOf } from "./timeline.js";
import { lasting, moment, relative, withShortTimes } from "./times.js";

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
  | "createdAt"
  | "startedAt"
  | "finishedAt"
  | "input"
  | "output"
  | "error"
>;

export interface RunPicture {
  readonly info: Run;
  readonly executions: readonly Execution[];
  /** What the workflow declares: of what has not begun there is no execution yet. */
  readonly nodes: readonly Pick<NodeInfo, "name" | "state">[];
  readonly progress: readonly ProgressInfo[];
  readonly explanation: Explanation;
}

/** How many executions are drawn; of a loop there may be thousands. */
const mostDrawn = 40;

export function drawRun(picture: RunPicture, out: Output, all: boolean): string[] {
  return [
    ...header(picture.info, out),
    ...steps(picture, out, all),
    ...progress(picture.progress, out),
    ...state(picture, out),
  ];
}

function header(info: Run, { paint, now }: Output): string[] {
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
    ["created", moment(createdAt, now())],
    [
      "ended",
      finishedAt === null ? null : `${moment(finishedAt, now())}${took === null ? "" : `, took ${lasting(took)}`}`,
    ],
    ["input", inputOf(info)],
    ["output", status === "completed" ? short(info.output) : null],
  ];
  const title = `${workflow}${version === "" ? "" : ` ${version}`}`;
  return [
    `${paint("bold", printable(title))}  ${paint(colourOf(status), status)}`,
    ...facts.flatMap(([name, text]) =>
      text === null ? [] : [`  ${paint("dim", name.padEnd(8))}  ${printable(text)}`],
    ),
  ];
}

/** That of a run that was built at run time is its graph: all of it, which nobody reads here. */
function inputOf({ id, input }: Run): string | null {
  const { version, signature, frozen_at, nodes } = (input ?? {}) as Partial<FrozenDag>;
  const isGraph = version === 1 && signature !== undefined && frozen_at !== undefined && typeof nodes === "object";
  if (!isGraph || nodes === null) return short(input);
  return `a graph of ${count(Object.keys(nodes).length, "node")}; all of it: pawl dag export ${id}`;
}

const longestValue = 200;
const short = (value: unknown) => (value === undefined ? null : cut(jsonOf(value), longestValue));

function steps({ executions, nodes }: RunPicture, out: Output, all: boolean): string[] {
  const notBegun = nodes.filter(({ state }) => state === "pending");
  if (executions.length + notBegun.length === 0) return [];
  const { paint, now, columns } = out;
  const shown = all ? executions : executions.slice(-mostDrawn);
  const hidden = executions.length - shown.length;
  const scale = scaleOf(shown, columns >= 100 ? 30 : 16, now());
  const rows = shown.map((one): Cell[] => [
    `  ${one.step}`,
    one.attempt === 1 ? "" : `#${one.attempt}`,
    { text: stateOf(one), colour: colourOf(one.state) },
    timeOf(one, now()),
    { text: bar(one, scale, now()), colour: colourOf(one.state) },
    one.error === null ? "" : { text: one.error.message, colour: "red" },
  ]);
  const toCome = all ? notBegun : notBegun.slice(0, mostDrawn);
  for (const { name } of toCome)
    rows.push([`  ${name}`, "", { text: "not begun", colour: colourOf("pending") }, "", "", ""]);
  const laterOnes = notBegun.length - toCome.length;
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
    ...(hidden === 0 ? [] : [paint("dim", `  … ${hidden} earlier; --all shows them`)]),
    ...table(titles, rows, { columns, paint, cutWhole: out.isTerminal }),
    ...(laterOnes === 0 ? [] : [paint("dim", `  … ${laterOnes} more that have not begun; --all shows them`)]),
  ];
}

/** Where the outcome says more than the state. */
const tellingOutcomes: Readonly<Record<string, string>> = {
  abandoned: "abandoned",
  continued: "continued",
  reattempted: "reattempted",
  timed_out: "timed out",
  workflow_paused: "paused",
};

const stateOf = ({ state, outcome }: Execution) => tellingOutcomes[outcome ?? ""] ?? state;

function timeOf({ state, startedAt, finishedAt, scheduledFor }: Execution, now: number): string {
  if (state === "scheduled") return scheduledFor === null ? "" : relative(scheduledFor, now);
  if (startedAt === null) return "";
  return lasting((finishedAt?.getTime() ?? now) - startedAt.getTime());
}

function progress(rows: readonly ProgressInfo[], { paint }: Output): string[] {
  if (rows.length === 0) return [];
  const lines = rows.map(({ node, done, total, message, rate, etaMs }) => {
    const parts = [
      total === null ? `${done}` : `${done} of ${total}`,
      rate === null ? null : `${Math.round(rate)}/s`,
      etaMs === null || etaMs === 0 ? null : `${lasting(etaMs)} left`,
      message,
    ];
    return `  ${printable([node || "run", parts.filter((part) => part !== null).join(", ")].join("  "))}`;
  });
  return ["", paint("bold", "progress"), ...lines];
}

/** Why it is where it is; for a run that has ended well, there is nothing to say. */
function state({ info, executions, explanation }: RunPicture, { paint, now }: Output): string[] {
  if (info.status === "completed") return [];
  const error = info.error ?? openError(executions);
  const lines = explanation.because === "ended" ? [] : ["", withShortTimes(printable(explanation.text), now())];
  if (error === null) return lines;
  const [what, how] =
    info.status === "canceled" && info.error !== null ? ["canceled", error.message] : ["last error", inOneLine(error)];
  return [...lines, "", `${paint("red", what)}  ${printable(how)}`];
}

/** The last one that was not made good by a later attempt. */
function openError(executions: readonly Execution[]): Error | null {
  const madeGood = new Set<string>();
  for (const { step, state, error } of executions.toReversed()) {
    if (state === "completed" || state === "skipped") madeGood.add(step);
    if (error !== null && !madeGood.has(step)) return error;
  }
  return null;
}

const inOneLine = ({ name, message }: Error) => `${name}: ${message}`;
