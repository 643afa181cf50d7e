/** The latest runs of a workflow. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href, runHref } from "../../router/router.js";
import { Id } from "../../ui/copy.js";
import { Empty, Failure, Loading, Section } from "../../ui/page.js";
import { Status } from "../../ui/status.js";
import { Table } from "../../ui/table.js";
import { Time, Took } from "../../ui/time.js";
import { runsHref, startPath } from "./workflow-links.js";
import { jobNameOf } from "./workflow-rows.js";

export function RecentRuns({ workflow }: { readonly workflow: string }) {
  const { data, error } = useQuery<Answer<"listRuns">>("v1/runs", { workflow, limit: 10, maxPayload: 0 });
  const runs = data?.runs ?? [];
  return (
    <Section
      title="Recent runs"
      isFlush={runs.length > 0}
      aside={runs.length === 0 ? undefined : <a href={runsHref({ workflow })}>All runs</a>}
    >
      {data === undefined ? error === null ? <Loading /> : <Failure error={error} /> : null}
      {data !== undefined && runs.length === 0 ? (
        <Empty title="It has no runs" icon="runs">
          {jobNameOf(workflow) === null ? (
            <a href={href(startPath(workflow))}>Start the first one</a>
          ) : (
            "Nodes of built graphs start it."
          )}
        </Empty>
      ) : null}
      {runs.length === 0 ? null : (
        <Table
          label="Recent runs"
          rows={runs}
          keyOf={({ id }) => id}
          columns={[
            { title: "Run", cell: ({ id }) => <Id id={id} to={runHref(id)} /> },
            { title: "Status", cell: ({ status }) => <Status state={status} isSmall /> },
            { title: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
            {
              title: "Took",
              isNumber: true,
              isMinor: true,
              cell: ({ startedAt, finishedAt }) => <Took from={startedAt} to={finishedAt} />,
            },
          ]}
        />
      )}
    </Section>
  );
}
