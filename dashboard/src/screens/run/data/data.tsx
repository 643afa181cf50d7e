/** What went into the run and what came out of it. */
import type { Run } from "../../../actions/run-actions.js";
import { apiUrl, getJson, runPath } from "../../../api/api.js";
import { CopyButton } from "../../../ui/copy.js";
import { escapeHidden } from "../../../ui/format.js";
import { Facts, Note, Section } from "../../../ui/page.js";
import { hasEnded } from "../header/run-words.js";
import type { RunTabProps } from "../tab-props.js";
import css from "./data.module.css";
import { ErrorView } from "./error-view.js";
import { Payload } from "./payload.js";

export function Data({ run, asOf, onSelectStep }: RunTabProps) {
  const load = (field: "input" | "output" | "error") => async () =>
    (await getJson<Run>(apiUrl(runPath(run.id))))[field] as unknown;
  const isDamaged = (field: string) => run.damaged.includes(field);
  const others = run.damaged.filter((field) => !["input", "output", "error"].includes(field));
  const payload = (field: "input" | "output") => (
    <Payload
      value={run[field]}
      what={`the ${field}`}
      fileName={`${run.workflow}-${run.id}-${field}`}
      load={load(field)}
      isDamaged={isDamaged(field)}
    />
  );
  return (
    <>
      {asOf === null ? null : (
        <p class={css.aside}>Data do not change with the chosen event: you see them as they are now.</p>
      )}
      {others.length === 0 ? null : (
        <div class={css.aside}>
          <Note tone="failed">
            These fields of the run cannot be read, and are shown as empty: {others.join(", ")}.
          </Note>
        </div>
      )}
      {run.error === null && !isDamaged("error") ? null : (
        <Section title={run.status === "canceled" ? "Reason of the cancellation" : "Error"}>
          {isDamaged("error") ? (
            <Payload value={null} what="the error" fileName="error" load={load("error")} isDamaged />
          ) : (
            <ErrorView error={run.error} load={load("error")} />
          )}
        </Section>
      )}
      {run.status === "paused" && run.failedStep !== null ? (
        <p class={css.aside}>
          The error that paused the run is shown with its step:{" "}
          <button type="button" class={css.link} onClick={() => onSelectStep(run.failedStep)}>
            {escapeHidden(run.failedStep)}
          </button>
        </p>
      ) : null}
      <Section title="Input">{payload("input")}</Section>
      <Section title="Output">
        {run.status === "completed" || isDamaged("output") ? (
          payload("output")
        ) : (
          <p class={css.muted}>{hasEnded(run) ? `A ${run.status} run has no output.` : "There is no output yet."}</p>
        )}
      </Section>
      <Section title="Identity">
        <div class={css.identity}>
          <Facts facts={identityOf(run)} />
        </div>
      </Section>
    </>
  );
}

const identityOf = (run: Run): Parameters<typeof Facts>[0]["facts"] => [
  ["Id", <Copyable key="id" text={run.id} what="the id" />],
  [
    "Idempotency key",
    run.idempotencyKey === null ? null : <Copyable text={run.idempotencyKey} what="the idempotency key" />,
  ],
  ["Tags", run.tags.length === 0 ? null : escapeHidden(run.tags.join(", "))],
  [
    "Fingerprint of the error",
    run.fingerprint === null ? null : <Copyable text={run.fingerprint} what="the fingerprint" />,
  ],
  ["Reason of the pause", run.pauseReason === null ? null : escapeHidden(run.pauseReason)],
];

function Copyable({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <span class={css.copyable}>
      <code>{escapeHidden(text)}</code>
      <CopyButton text={text} what={what} />
    </span>
  );
}
