/** Why the server has not started the run, and what to do about it. */
import type { ApiError } from "../../../api/api.js";
import { runHref } from "../../../router/router.js";
import { shortId } from "../../../ui/copy.js";
import { Note } from "../../../ui/page.js";
import css from "./start.module.css";

const advice: Readonly<Record<string, string>> = {
  WORKFLOW_NOT_FOUND: "No worker has registered this workflow. Start a worker that has it.",
  PAYLOAD_TOO_LARGE: "Store the data elsewhere and give the run a reference to it.",
};

export function Refusal({ error, others }: { readonly error: ApiError; readonly others: readonly string[] }) {
  return (
    <div role="alert">
      <Note
        tone="failed"
        {...(error.runId === null
          ? {}
          : { action: <a href={runHref(error.runId)}>Open run {shortId(error.runId)}</a> })}
      >
        <strong>Nothing was started. </strong>
        {error.issues.length > 0 ? issuesText(error, others) : error.message} {advice[error.code] ?? ""}
        {others.length === 0 ? null : (
          <ul class={css.issues}>
            {others.map((issue) => (
              <li key={issue}>{issue}</li>
            ))}
          </ul>
        )}
      </Note>
    </div>
  );
}

const issuesText = ({ issues }: ApiError, others: readonly string[]): string =>
  others.length === issues.length
    ? "The input is not valid:"
    : `The input is not valid: see the marked fields${others.length === 0 ? "." : ", and:"}`;
