/** One workflow: how its runs do, what it consists of, who executes it, and a form that starts a run. */
import { usePageActions } from "../../actions/page-actions.js";
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href, location, navigate, setSearch } from "../../router/router.js";
import { useShortcuts } from "../../shell/keyboard.js";
import { Button, LinkButton } from "../../ui/button.js";
import { Snippet } from "../../ui/copy.js";
import { escapeHidden, plural } from "../../ui/format.js";
import { Empty, Failure, Loading, PageHeading, Section } from "../../ui/page.js";
import { Time } from "../../ui/time.js";
import type { ScreenProps } from "../screen-props.js";
import { Definition } from "./definition.js";
import { FiguresChart } from "./figures-chart.js";
import { Metrics } from "./metrics.js";
import { RecentRuns } from "./recent-runs.js";
import { StartDialog } from "./start/start-dialog.js";
import { toCommand, toTypeScript } from "./start/start-request.js";
import { Versions } from "./versions.js";
import { Warnings } from "./warnings.js";
import css from "./workflow.module.css";
import { WorkflowErrors } from "./workflow-errors.js";
import { runsHref, startPath } from "./workflow-links.js";
import { jobNameOf, type Workflow } from "./workflow-rows.js";

export function WorkflowScreen({ params }: ScreenProps) {
  const name = params.workflow as string;
  const { data, error } = useQuery<Answer<"listWorkflows">>("v1/workflows");
  const workflow = data?.workflows.find((one) => one.name === name);
  if (data === undefined) return error === null ? <Loading /> : <Failure error={error} />;
  return workflow === undefined ? <Unregistered name={name} /> : <Registered key={name} workflow={workflow} />;
}

function Registered({ workflow }: { readonly workflow: Workflow }) {
  const { name } = workflow;
  const metrics = useQuery<Answer<"getMetrics">>(
    `v1/workflows/${encodeURIComponent(name)}/metrics`,
    {},
    { minIntervalMs: 2_000 },
  );
  const errors = useQuery<Answer<"listErrors">>("v1/errors", {}, { minIntervalMs: 2_000 });
  const groups = errors.data?.errors.filter((group) => group.workflow === name);
  const canStart = jobNameOf(name) === null;
  const isStarting = canStart && location.value.search.get("start") === "1";
  const open = () => navigate(startPath(name));
  usePageActions(canStart ? [{ label: `Start a run of ${name}`, icon: "play", run: open }] : [], [name]);
  useShortcuts(canStart ? [{ keys: "s", about: "Start a run of this workflow", run: open }] : [], [name]);
  return (
    <>
      <PageHeading title={escapeHidden(jobNameOf(name) ?? name)} about={<About workflow={workflow} />}>
        <LinkButton to={runsHref({ workflow: name })} icon="runs">
          All runs
        </LinkButton>
        {canStart ? (
          <Button kind="primary" icon="play" onClick={open}>
            Start a run
          </Button>
        ) : null}
      </PageHeading>
      <Warnings workflow={name} metrics={metrics.data} />
      <Metrics metrics={metrics} />
      <FiguresChart workflow={name} />
      <Definition workflow={workflow} groups={groups} />
      <WorkflowErrors workflow={name} groups={groups} error={errors.error} capped={errors.data?.capped ?? []} />
      <div class={css.columns}>
        <RecentRuns workflow={name} />
        <div class={css.side}>
          <Versions workflow={workflow} metrics={metrics.data} />
          {canStart ? <StartElsewhere workflow={name} /> : null}
        </div>
      </div>
      {isStarting ? (
        <StartDialog workflow={workflow} onClose={() => setSearch({ start: null }, { replace: true })} />
      ) : null}
    </>
  );
}

function About({ workflow: { name, steps, version, queue, createdAt } }: { readonly workflow: Workflow }) {
  const kind = jobNameOf(name) !== null ? "A job of built graphs" : steps.length === 0 ? "A function" : null;
  return (
    <>
      {kind ?? `${plural(steps.length, "declared step")}`}
      {version === "" ? "" : ` · version ${escapeHidden(version)}`} · queue {escapeHidden(queue)} · registered{" "}
      <Time at={createdAt} />
    </>
  );
}

function StartElsewhere({ workflow }: { readonly workflow: string }) {
  const body = { input: {} };
  return (
    <Section title="Start it from elsewhere">
      <div class={css.snippets}>
        <Snippet code={toCommand(workflow, body)} what="the command" />
        <Snippet code={toTypeScript(workflow, body)} what="the code" />
        <p class={css.muted}>The start form shows both with the input and the options that you fill in.</p>
      </div>
    </Section>
  );
}

/** Graphs that were built at run time have runs, and no registration. */
function Unregistered({ name }: { readonly name: string }) {
  return (
    <>
      <PageHeading title={escapeHidden(name)} />
      <Empty title="No such workflow is registered" icon="workflows">
        <p>
          A workflow is registered when a worker that has it starts. Graphs that were built at run time have runs, and
          no registration.
        </p>
        <p>
          <a href={runsHref({ workflow: name })}>List the runs of this name</a>
        </p>
        <p>
          <a href={href("/workflows")}>Show all workflows</a>
        </p>
      </Empty>
    </>
  );
}
