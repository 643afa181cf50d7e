/** Why the run is not moving, in one line, now or as of an event. */
import type { ComponentChildren } from "preact";
import type { Run } from "../../../actions/run-actions.js";
import type { Answer } from "../../../api/api.js";
import { runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { href } from "../../../router/router.js";
import { databaseNow, secondTick } from "../../../shell/me.js";
import { escapeHidden, plural } from "../../../ui/format.js";
import { formatDuration, formatRelative } from "../../../ui/time.js";
import { Limited } from "./limited.js";
import css from "./run-header.module.css";
import { describeWaiting, hasEnded } from "./run-words.js";
import { TextWithTimes } from "./text-with-times.js";

export function Why({ run }: { readonly run: Run }) {
  // The end of a run never changes, so it is told from the run itself, and the server need not read its log.
  const { data, error } = useQuery<Answer<"explainRun">>(hasEnded(run) ? null : runPath(run.id, "explanation"));
  if (hasEnded(run)) return <Line text={endOf(run)} since={null} until={null} />;
  if (data === undefined)
    return (
      <Line text={error === null ? "…" : `The reason could not be read: ${error.message}`} since={null} until={null} />
    );
  const screen = screenFor[data.because];
  const text = isHidden(data.text)
    ? `${shortReasons[data.because] ?? ""} The details are hidden: your access does not include payloads.`
    : withoutError(run, data.text ?? "");
  return (
    <Line
      text={text}
      since={data.since}
      until={data.limited === undefined ? data.until : null}
      {...(data.limited === undefined ? {} : { content: <Limited limited={data.limited} /> })}
    >
      {screen === undefined ? null : <a href={href(screen.path)}>{screen.label}</a>}
    </Line>
  );
}

/** The reason for people who may not see texts that quote payloads. */
const shortReasons: Readonly<Record<string, string>> = {
  paused: "It is paused until an operator resumes it.",
  executing: "A worker executes it.",
  worker_lease_expired: "Its worker is silent; any live worker takes it over.",
  planned: "It has not started yet.",
  waiting: "It waits for something.",
  queue_paused: "Its queue is paused.",
  no_worker: "It is due, but no live worker has its workflow.",
  limited: "It is due, and waits for a free slot of a limit.",
  about_to_run: "It is due, and waits for a free slot of a worker.",
};

const isHidden = (text: string | null): boolean => text === "[hidden]";

/** Where to look further, by the reason. */
const screenFor: Readonly<Record<string, { readonly path: string; readonly label: string }>> = {
  executing: { path: "/workers", label: "Workers" },
  worker_lease_expired: { path: "/workers", label: "Workers" },
  no_worker: { path: "/workers", label: "Workers" },
  about_to_run: { path: "/workers", label: "Workers" },
  queue_paused: { path: "/queues", label: "Queues" },
};

function Line({
  text,
  since,
  until,
  content,
  children,
}: {
  readonly text: string;
  /** What is shown in place of the text. */
  readonly content?: ComponentChildren;
  readonly since: string | null;
  readonly until: string | null;
  readonly children?: ComponentChildren;
}) {
  if (since !== null || until !== null) void secondTick.value;
  const now = databaseNow();
  return (
    <p class={css.why} data-part="why">
      <span class={css.whyText} title={text}>
        {content ?? <TextWithTimes text={text} />}
      </span>
      {since === null ? null : <span class={css.when}>for {formatDuration(now - Date.parse(since))}</span>}
      {until === null ? null : <span class={css.when}>{untilText(Date.parse(until), now)}</span>}
      {children}
    </p>
  );
}

const untilText = (until: number, now: number): string =>
  until <= now ? "due now" : `continues ${formatRelative(until, now)} at the latest`;

/** The error itself stands below, so the sentence does not repeat it. */
function withoutError({ failedStep, pauseReason }: Run, text: string): string {
  if (failedStep === null || pauseReason === null || !text.endsWith(`: ${pauseReason}`)) return text;
  return `${text.slice(0, -pauseReason.length - 2)}.`;
}

function endOf({ status, startedAt, createdAt, finishedAt, failedStep, error }: Run): string {
  const took = formatDuration(Date.parse(finishedAt ?? createdAt) - Date.parse(startedAt ?? createdAt));
  if (status === "completed") return `It completed at ${finishedAt}, after ${took}.`;
  if (status === "failed")
    return `It failed${failedStep === null ? "" : ` at step “${failedStep}”`} at ${finishedAt}, after ${took}.`;
  const reason = (error as { readonly message?: unknown } | null)?.message;
  return `It was canceled at ${finishedAt}${typeof reason === "string" && reason !== "" && !isHidden(reason) ? `: ${reason}` : "."}`;
}

/** What the run was doing after the event. */
export function WhyThen({ state }: { readonly state: Answer<"getRunState"> | undefined }) {
  if (state === undefined) return <p class={css.why}>…</p>;
  const executing = state.steps.filter((step) => step.state === "executing");
  const completed = state.steps.filter((step) => step.state === "completed").length;
  const parts = [
    state.paused === null ? null : `It was paused: ${state.paused.reason ?? "no reason was given"}`,
    executing.length === 0 ? null : `It executed ${executing.map(({ name }) => `“${name}”`).join(", ")}.`,
    state.waitingFor.length === 0 ? null : `It waited for ${state.waitingFor.map(describeWaiting).join("; and for ")}.`,
    state.signals.length === 0 ? null : `It had not consumed ${state.signals.map((name) => `“${name}”`).join(", ")}.`,
    `${plural(completed, "step")} had completed.`,
  ].filter((part) => part !== null);
  return (
    <p class={css.why} data-part="why">
      <span class={css.whyText}>{escapeHidden(parts.join(" "))}</span>
    </p>
  );
}
