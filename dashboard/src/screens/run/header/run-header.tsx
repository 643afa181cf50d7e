/**
 * The header of a run. Its first lines stay in view: the status, why the run is not moving, and what can be done. The facts
 * below them scroll away.
 */
import type { Answer } from "../../../api/api.js";
import { runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { href } from "../../../router/router.js";
import { IconButton } from "../../../ui/button.js";
import { CopyButton, copyText, Id } from "../../../ui/copy.js";
import { escapeHidden } from "../../../ui/format.js";
import { Status } from "../../../ui/status.js";
import type { RunTabProps } from "../tab-props.js";
import { Children } from "./children.js";
import { ErrorSummary } from "./error-summary.js";
import { Progress } from "./progress.js";
import { RunActions } from "./run-actions.js";
import { RunFacts } from "./run-facts.js";
import css from "./run-header.module.css";
import { hasEnded } from "./run-words.js";
import { Why, WhyThen } from "./why.js";

export function RunHeader(props: RunTabProps) {
  const { run, lastEvent, asOf } = props;
  const { data: then } = useQuery<Answer<"getRunState">>(
    asOf === null ? null : runPath(run.id, "state"),
    { event: asOf, maxPayload: 2_000 },
    { keepPrevious: true },
  );
  const isPresent = asOf === null;
  return (
    <>
      <header class={css.sticky} data-part="run-header">
        <div class={css.title}>
          <Status state={isPresent ? run.status : (then?.status ?? run.status)} />
          <h1>
            <a href={href(`/workflows/${encodeURIComponent(run.workflow)}`)}>{escapeHidden(run.workflow)}</a>
          </h1>
          <span class={css.id}>
            <Id id={run.id} />
            <CopyButton text={run.id} what="the id of the run" />
            <IconButton
              icon="terminal"
              label="Copy as a command"
              onClick={() => void copyText(`pawl show ${run.id}`, "the command")}
            />
          </span>
          <RunActions run={run} lastEvent={lastEvent} isPresent={isPresent} />
        </div>
        {isPresent ? <Why run={run} /> : <WhyThen state={then} />}
      </header>
      <div class={css.rest}>
        {isPresent ? <ErrorSummary {...props} /> : null}
        <RunFacts run={run} />
        {isPresent && !hasEnded(run) ? <Progress runId={run.id} /> : null}
        <Children runId={run.id} />
      </div>
    </>
  );
}
