/** The page of one run. */
import type { Answer } from "../../api/api.js";
import { runPath } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { location, setSearch } from "../../router/router.js";
import { Failure, Loading, PageHeading } from "../../ui/page.js";
import { Tabs } from "../../ui/tabs.js";
import type { ScreenProps } from "../screens.js";
import { Data } from "./data/data.js";
import { Graph } from "./graph/graph.js";
import { Log } from "./log/log.js";
import { Messages } from "./messages/messages.js";
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
  const { data: run, error } = useQuery<Answer<"getRun">>(runPath(runId), { maxPayload: 16_000 });
  const { data: window } = useQuery<Answer<"getRunHistory">>(runPath(runId, "history"), { limit: 1, maxPayload: 0 });
  if (run === undefined) return error === null ? <Loading /> : <Failure error={error} />;
  const { search } = location.value;
  const tab = tabs.find(({ id }) => id === search.get("tab")) ?? tabs[0];
  const event = Number(search.get("event") ?? Number.NaN);
  const props: RunTabProps = {
    run,
    lastEvent: window?.lastEvent ?? 0,
    asOf: Number.isInteger(event) ? event : null,
    selectedStep: search.get("step"),
    onSelectStep: (step) => setSearch({ step }, { replace: true }),
  };
  return (
    <>
      <PageHeading title={run.workflow} />
      <Tabs label="Parts of the run" tabs={tabs} current={tab.id} onChoose={(id) => setSearch({ tab: id })} />
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab.id}`}>
        <tab.component {...props} />
      </div>
      {props.selectedStep === null ? null : <StepPanel {...props} />}
    </>
  );
}
