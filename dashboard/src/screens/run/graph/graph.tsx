/** The graph of a run of a class, a graph or a built graph, as a drawing or as a list. */
import { location, runHref, setSearch } from "../../../router/router.js";
import { escapeHidden, plural } from "../../../ui/format.js";
import { Empty, Failure, Loading } from "../../../ui/page.js";
import { StatusIcon } from "../../../ui/status.js";
import type { RunTabProps } from "../tab-props.js";
import { countStates } from "./box-face.js";
import { Drawing } from "./drawing.js";
import css from "./graph.module.css";
import { NodeList } from "./node-list.js";
import { useRunNodes } from "./run-nodes.js";
import type { GraphNode } from "./structure.js";

export function Graph(props: RunTabProps) {
  const { run, selectedStep, onSelectStep } = props;
  const { nodes, tookMs, isFunction, error } = useRunNodes(props);
  if (nodes === null) return error === null ? <Loading /> : <Failure error={error} />;
  if (isFunction || nodes.length === 0)
    return (
      <Empty title="This run has no declared graph" icon="graph">
        <p>
          {isFunction
            ? `“${escapeHidden(run.workflow)}” declares no steps: which ones it takes is decided while it runs, so there is nothing to draw ahead.`
            : "Its workflow has declared no steps."}
        </p>
        <a href={runHref(run.id, { tab: "timeline" })}>Show the steps that it has taken on the timeline</a>
      </Empty>
    );
  const isList = location.value.search.get("view") === "list";
  return (
    <section class={css.graph} aria-label="Graph of the run">
      <div class={css.head}>
        <fieldset class={css.switch} aria-label="Show the nodes as">
          <ViewButton label="Graph" isChosen={!isList} view={null} />
          <ViewButton label="List" isChosen={isList} view="list" />
        </fieldset>
        <Summary nodes={nodes} />
      </div>
      {isList ? (
        <NodeList nodes={nodes} tookMs={tookMs} selected={selectedStep} onSelect={onSelectStep} />
      ) : (
        <Drawing
          nodes={nodes}
          label={`${plural(nodes.length, "node")}. The arrow keys move between them, Enter selects one. The list shows the same.`}
          selected={selectedStep}
          onSelect={onSelectStep}
          tookMs={tookMs}
        />
      )}
    </section>
  );
}

function ViewButton({
  label,
  isChosen,
  view,
}: {
  readonly label: string;
  readonly isChosen: boolean;
  readonly view: string | null;
}) {
  return (
    <button
      type="button"
      class={css.choice}
      aria-pressed={isChosen}
      onClick={() => setSearch({ view }, { replace: true })}
    >
      {label}
    </button>
  );
}

function Summary({ nodes }: { readonly nodes: readonly GraphNode[] }) {
  const counts = [...countStates(nodes)].sort(([, a], [, b]) => b - a);
  return (
    <p class={css.summary}>
      <span>{plural(nodes.length, "node")}</span>
      {counts.map(([state, count]) => (
        <span key={state} class={css.count}>
          <StatusIcon state={state} />
          <span>
            {count.toLocaleString("en")} <span aria-hidden="true">{state}</span>
          </span>
        </span>
      ))}
    </p>
  );
}
