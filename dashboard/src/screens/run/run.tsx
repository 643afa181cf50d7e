/** The page of one run: a header that stays in view, tabs, and a panel for the selected step. */
import { useEffect } from "preact/hooks";
import type { Answer } from "../../api/api.js";
import { runPath } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href, location, setSearch } from "../../router/router.js";
import { Empty, Failure, Loading, useTitle } from "../../ui/page.js";
import { Tabs } from "../../ui/tabs.js";
import type { ScreenProps } from "../screen-props.js";
import { Data } from "./data/data.js";
import { Graph } from "./graph/graph.js";
import { AsOfBar } from "./header/as-of-bar.js";
import { RunHeader } from "./header/run-header.js";
import { hasEnded } from "./header/run-words.js";
import { Log } from "./log/log.js";
import { Messages } from "./messages/messages.js";
import css from "./run.module.css";
import { StepPanel } from "./step-panel/step-panel.js";
import type { RunTabProps } from "./tab-props.js";
import { Timeline } from "./timeline/timeline.js";

const tabs = [
  { id: "timeline", label: "Timeline", component: Timeline },
  { id: "graph", label: "Graph", component: Graph },
  { id: "log", label: "Log", component: Log },
  { id: "data", label: "Data", component: Data },
  { id: "messages", label: "Messages", component: Messages },
] as const;

export function RunScreen({ params }: ScreenProps) {
  const runId = params.run as string;
  // Another run gets a page of its own, so that nothing of the run before stays.
  return <RunPage key={runId} runId={runId} />;
}

function RunPage({ runId }: { readonly runId: string }) {
  const { data: run, error } = useQuery<Answer<"getRun">>(runPath(runId), { maxPayload: 16_000 });
  const { data: window } = useQuery<Answer<"getRunHistory">>(runPath(runId, "history"), { limit: 1, maxPayload: 0 });
  useTitle(run === undefined ? "Run" : `${run.workflow} ${run.status}`);
  if (run === undefined) {
    if (error?.status === 404) return <NoRun runId={runId} />;
    return error === null ? <Loading /> : <Failure error={error} />;
  }
  const { search } = location.value;
  const tab = tabs.find(({ id }) => id === search.get("tab")) ?? tabs[0];
  const props: RunTabProps = {
    run,
    lastEvent: window?.lastEvent ?? 0,
    asOf: eventOf(search.get("event")),
    selectedStep: search.get("step"),
    onSelectStep: (step) => setSearch({ step }, { replace: true }),
  };
  const total = props.lastEvent + (hasEnded(run) ? 1 : 0);
  return (
    <div class={css.page}>
      <div class={css.main}>
        <RunHeader {...props} />
        <Tabs
          label="Parts of the run"
          tabs={tabs.map(({ id, label }) => ({ id, label, ...(id === "log" && total > 0 ? { count: total } : {}) }))}
          current={tab.id}
          onChoose={(id) => setSearch({ tab: id === tabs[0].id ? null : id })}
        />
        {props.asOf === null && tab.id !== "log" ? null : <AsOfBar runId={run.id} total={total} asOf={props.asOf} />}
        <div id="tab-panel" role="tabpanel" class={css.panel} aria-labelledby={`tab-${tab.id}`}>
          {window === undefined ? <Loading /> : <tab.component {...props} />}
        </div>
      </div>
      {props.selectedStep === null ? null : <StepPanel key={props.selectedStep} {...props} />}
    </div>
  );
}

/** The number of the event in `?event=`; null if there is none. */
function eventOf(text: string | null): number | null {
  const event = Number(text ?? "");
  return text !== null && text !== "" && Number.isSafeInteger(event) && event >= 0 ? event : null;
}

function NoRun({ runId }: { readonly runId: string }) {
  useEffect(() => void document.querySelector("main")?.scrollTo(0, 0), []);
  return (
    <Empty title="There is no such run" icon="search">
      No run has the id <code>{runId}</code>. It may have been pruned: runs that ended long ago are deleted, together
      with their logs. It may also be in another database. <a href={href("/runs")}>See all runs</a>
    </Empty>
  );
}
