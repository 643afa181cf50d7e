/** The attempts at a step, the latest first, each with its error. */
import type { Answer } from "../../../api/api.js";
import { apiUrl, getJson, runPath } from "../../../api/api.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { Status } from "../../../ui/status.js";
import { Time, Took } from "../../../ui/time.js";
import { ErrorView } from "../data/error-view.js";
import css from "./step-panel.module.css";

type Step = Answer<"getRunStep">;
type Execution = Step["executions"][number];

export function Attempts({ runId, step }: { readonly runId: string; readonly step: Step }) {
  const latestError = step.executions.findLast(({ error }) => error !== null);
  const load = (id: string) => async () => {
    const whole = await getJson<Step>(apiUrl(runPath(runId, "step"), { node: step.node }));
    return whole.executions.find((execution) => execution.id === id)?.error;
  };
  const left = step.executionCount - step.executions.length;
  return (
    <ol class={css.list}>
      {[...step.executions].reverse().map((execution) => (
        <li key={execution.id} class={css.attempt}>
          <Facts execution={execution} />
          {execution.error === null ? null : execution === latestError ? (
            <ErrorView error={execution.error} load={load(execution.id)} />
          ) : (
            <details>
              <summary>{headlineOf(execution.error)}</summary>
              <ErrorView error={execution.error} load={load(execution.id)} />
            </details>
          )}
        </li>
      ))}
      {left > 0 ? <li class={css.muted}>{formatCount(left)} earlier attempts are in the log.</li> : null}
    </ol>
  );
}

function Facts({ execution }: { readonly execution: Execution }) {
  const { attempt, state, outcome, startedAt, finishedAt, scheduledFor, worker } = execution;
  return (
    <div class={css.attemptHead}>
      <span class={css.number}>{attempt}</span>
      <Status state={state} isSmall />
      {outcome === null || outcome === "success" ? null : (
        <span class={css.muted}>{escapeHidden(outcome.replaceAll("_", " "))}</span>
      )}
      {startedAt === null ? (
        scheduledFor === null ? null : (
          <span class={css.muted}>
            planned for <Time at={scheduledFor} />
          </span>
        )
      ) : (
        <span class={css.muted}>
          <Time at={startedAt} /> · took <Took from={startedAt} to={finishedAt} />
        </span>
      )}
      {worker === null ? null : <span class={css.muted}>on {escapeHidden(worker)}</span>}
    </div>
  );
}

const headlineOf = (error: unknown): string => {
  const { name, message } = (error ?? {}) as { readonly name?: unknown; readonly message?: unknown };
  return escapeHidden(`${String(name ?? "Error")}: ${String(message ?? "")}`.slice(0, 120));
};
