/** The error of a failed or paused run, with one click to its cause and stack. */
import type { Answer } from "../../../api/api.js";
import { runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { href, runHref, setSearch } from "../../../router/router.js";
import { Button, LinkButton } from "../../../ui/button.js";
import { escapeHidden } from "../../../ui/format.js";
import { type ErrorData, errorDataOf } from "../data/error-view.js";
import type { RunTabProps } from "../tab-props.js";
import css from "./run-header.module.css";

export function ErrorSummary({ run, onSelectStep }: RunTabProps) {
  const isPaused = run.status === "paused";
  // The row of a paused run has no error, so that of its step is shown.
  const { data: step } = useQuery<Answer<"getRunStep">>(
    isPaused && run.failedStep !== null ? runPath(run.id, "step") : null,
    {
      node: run.failedStep,
      maxPayload: 16_000,
    },
  );
  const error: ErrorData | null =
    run.status === "failed"
      ? errorDataOf(run.error)
      : isPaused
        ? errorDataOf(step?.executions.findLast((one) => one.error !== null)?.error ?? null)
        : null;
  if (error === null) return null;
  const { failedStep, fingerprint } = run;
  return (
    <section class={`${css.error} ${isPaused ? css.paused : css.failed}`} aria-label="Why it stopped" data-part="error">
      <div class={css.errorHead}>
        <strong>{escapeHidden(error.name)}</strong>
        {failedStep === null ? null : <span>at step “{escapeHidden(failedStep)}”</span>}
      </div>
      <p class={css.message}>
        {error.message === "[hidden]"
          ? "The message is hidden: your access does not include payloads."
          : escapeHidden(error.message)}
      </p>
      <div class={css.errorLinks}>
        {failedStep === null ? (
          <Button onClick={() => setSearch({ tab: "data" })}>Cause and stack</Button>
        ) : (
          <Button onClick={() => onSelectStep(failedStep)}>Cause and stack</Button>
        )}
        <LinkButton to={runHref(run.id, { tab: "data" })}>Input</LinkButton>
        {fingerprint === null ? null : (
          <LinkButton to={href(`/runs?q=${encodeURIComponent(`fingerprint:${fingerprint}`)}`)}>Runs like it</LinkButton>
        )}
      </div>
    </section>
  );
}
