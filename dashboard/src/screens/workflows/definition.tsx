/** The declared steps of a workflow as a graph, with the runs that failed or are paused at each. */
import { useMemo } from "preact/hooks";
import type { Answer } from "../../api/api.js";
import { navigate } from "../../router/router.js";
import { escapeHidden, formatCount } from "../../ui/format.js";
import { Section } from "../../ui/page.js";
import { Table } from "../../ui/table.js";
import { listText } from "../run/graph/box-face.js";
import { Drawing } from "../run/graph/drawing.js";
import type { GraphNode } from "../run/graph/structure.js";
import css from "./workflow.module.css";
import { runsHref } from "./workflow-links.js";
import type { Workflow } from "./workflow-rows.js";

type ErrorGroup = Answer<"listErrors">["errors"][number];

const maxTableRows = 200;

export function Definition({
  workflow,
  groups,
}: {
  readonly workflow: Workflow;
  readonly groups: readonly ErrorGroup[] | undefined;
}) {
  const { name, steps } = workflow;
  const failures = failuresByStep(groups ?? []);
  const signature = [...failures].join();
  const nodes = useMemo(
    (): GraphNode[] =>
      steps.map((step) => ({
        ...{ id: step.name, name: step.name, after: step.after },
        ...{ state: null, attempt: 0, startedAt: null, finishedAt: null, error: null },
        failures: failures.get(step.name) ?? 0,
      })),
    [steps, signature],
  );
  if (steps.length === 0) return null;
  return (
    <Section title="Definition" isFlush aside="With the runs that failed or are paused at each step">
      <Drawing
        nodes={nodes}
        label={`${steps.length} declared steps of ${name}. Enter lists the runs that failed or are paused at a step.`}
        selected={null}
        onSelect={(step) => {
          if (step !== null) navigate(`/runs${new URL(runsHref({ workflow: name, step })).search}`);
        }}
      />
      <details class={css.twin}>
        <summary>Show the steps as a table</summary>
        <Table
          label="Declared steps"
          rows={nodes.slice(0, maxTableRows)}
          keyOf={({ id }) => id}
          columns={[
            { title: "Step", cell: (node) => escapeHidden(node.name) },
            { title: "After", cell: ({ after }) => (after.length === 0 ? "–" : listText(after.map(escapeHidden))) },
            {
              title: "Failed or paused here",
              isNumber: true,
              cell: ({ id, failures: count = 0 }) =>
                count === 0 ? "0" : <a href={runsHref({ workflow: name, step: id })}>{formatCount(count)}</a>,
            },
          ]}
        />
      </details>
    </Section>
  );
}

function failuresByStep(groups: readonly ErrorGroup[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { step, count } of groups) if (step !== null) counts.set(step, (counts.get(step) ?? 0) + count);
  return counts;
}
