/** The errors of a workflow, grouped by what is alike. */
import type { Answer, ApiError } from "../../api/api.js";
import { href, runHref } from "../../router/router.js";
import { escapeHidden, formatCount } from "../../ui/format.js";
import { Empty, Failure, Loading, Section } from "../../ui/page.js";
import { Status } from "../../ui/status.js";
import { Table } from "../../ui/table.js";
import { Time } from "../../ui/time.js";
import css from "./workflow.module.css";
import { runsHref } from "./workflow-links.js";

type ErrorGroup = Answer<"listErrors">["errors"][number];

const maxGroups = 10;
const maxMessage = 160;

export function WorkflowErrors({
  workflow,
  groups,
  error,
  capped,
}: {
  readonly workflow: string;
  readonly groups: readonly ErrorGroup[] | undefined;
  readonly error: ApiError | null;
  readonly capped: readonly string[];
}) {
  const count = groups?.length ?? 0;
  const aside = count > maxGroups ? <a href={href("/errors")}>{formatCount(count)} kinds: show all</a> : undefined;
  return (
    <Section title="Errors" isFlush={count > 0} aside={aside}>
      {groups === undefined ? error === null ? <Loading lines={2} /> : <Failure error={error} /> : null}
      {groups !== undefined && count === 0 ? (
        <Empty title="No run has failed or is paused by an error">
          {capped.length === 0 ? "" : "Only the newest 10,000 failed runs of all workflows were counted."}
        </Empty>
      ) : null}
      {groups === undefined || count === 0 ? null : (
        <Table
          label={`Errors of ${workflow}`}
          rows={groups.slice(0, maxGroups)}
          keyOf={({ fingerprint, status }) => `${fingerprint} ${status}`}
          columns={[
            { title: "Error", cell: ErrorText },
            { title: "Step", isMinor: true, cell: ({ step }) => (step === null ? "–" : escapeHidden(step)) },
            { title: "Runs are", cell: ({ status }) => <Status state={status} isSmall /> },
            {
              title: "Runs",
              isNumber: true,
              cell: ({ fingerprint, status, count: runs }) => (
                <a href={runsHref({ workflow, fingerprint, status })}>{formatCount(runs)}</a>
              ),
            },
            {
              title: "Latest",
              isMinor: true,
              cell: ({ latestRunId, lastRunAt }) => (
                <a href={runHref(latestRunId)}>
                  <Time at={lastRunAt} />
                </a>
              ),
            },
          ]}
        />
      )}
    </Section>
  );
}

function ErrorText({ name, message }: ErrorGroup) {
  const text = escapeHidden(message ?? "hidden: your access does not include payloads");
  return (
    <>
      <strong>{escapeHidden(name)}</strong>{" "}
      <span class={css.message} title={text.slice(0, 2_000)}>
        {text.length > maxMessage ? `${text.slice(0, maxMessage)}…` : text}
      </span>
    </>
  );
}
