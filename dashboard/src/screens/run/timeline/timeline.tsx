/** The timeline of a run: a waterfall of its steps, waits and children, as a chart or as a table. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type Answer, type Query, runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { location } from "../../../router/router.js";
import { databaseNow, secondTick } from "../../../shell/me.js";
import { Empty, Failure, Loading } from "../../../ui/page.js";
import { formatRelative } from "../../../ui/time.js";
import type { RunTabProps } from "../tab-props.js";
import { Chart } from "./chart.js";
import { GroupMembers, useOpenGroups } from "./open-groups.js";
import { SpanTable } from "./span-table.js";
import css from "./timeline.module.css";
import { Toolbar } from "./toolbar.js";
import { parseWaterfall, type Row, type Waterfall, withMembers } from "./waterfall.js";

/** The most events that one answer is computed from. */
const windowSize = 5_000;

export function Timeline(props: RunTabProps) {
  const { run, asOf } = props;
  const window = windowOf(location.value.search.get("after"), asOf);
  const path = asOf === 0 ? null : runPath(run.id, "waterfall");
  const { data, error } = useQuery<Answer<"getRunWaterfall">>(path, window, { keepPrevious: true });
  const waterfall = useMemo(() => (data === undefined ? null : parseWaterfall(data)), [data]);
  if (asOf === 0) return <NothingYet>Event 0 is before the first event of the log.</NothingYet>;
  if (waterfall === null) return error === null ? <Loading lines={6} /> : <Failure error={error} />;
  if (waterfall.lastEvent === null && waterfall.rows.length <= 1) return <NotBegun {...{ run, waterfall }} />;
  return <Loaded {...props} waterfall={waterfall} window={window} />;
}

/** The window that the address names: from an event on, and never beyond the event that the page shows the run as of. */
function windowOf(after: string | null, asOf: number | null): Query {
  const first = after === null || !/^\d{1,15}$/.test(after) ? null : Number(after);
  if (asOf === null) return { after: first };
  const begin = Math.min(first ?? Math.max(0, asOf - windowSize), asOf - 1);
  return { after: begin, limit: Math.min(windowSize, asOf - begin) };
}

function Loaded(props: RunTabProps & { readonly waterfall: Waterfall; readonly window: Query }) {
  const { run, waterfall, window, asOf } = props;
  const groups = useOpenGroups();
  const [members, setMembers] = useState<ReadonlyMap<string, readonly Row[]>>(new Map());
  const shown = new Map([...members].filter(([id]) => groups.isOpen(id)));
  const rows = withMembers(waterfall.rows, shown);
  const isLive = run.finishedAt === null && asOf === null && !waterfall.hasLater;
  if (isLive) void secondTick.value;
  // A browser's estimate of the clock must not cut what the server has already told.
  const until = isLive ? Math.max(waterfall.to, databaseNow()) : waterfall.to;
  const isTable = location.value.search.get("as") === "table";
  const common = { ...props, rows, groups, until, isLive };
  return (
    <div class={css.timeline}>
      <Toolbar waterfall={waterfall} windowSize={windowSize} isTable={isTable} />
      {groups.ids.map((id) => (
        <GroupMembers
          key={id}
          path={runPath(run.id, "waterfall")}
          query={{ ...window, expand: id }}
          onMembers={(found) => setMembers((before) => new Map(before).set(id, found))}
        />
      ))}
      {isTable ? <SpanTable {...common} /> : <Chart {...common} from={waterfall.from} />}
    </div>
  );
}

function NotBegun({ run, waterfall }: { readonly run: RunTabProps["run"]; readonly waterfall: Waterfall }) {
  void secondTick.value;
  const dueAt = waterfall.rows[0]?.spans.find(({ to }) => to === null)?.dueAt ?? null;
  const queued = `It was created ${formatRelative(Date.parse(run.createdAt), databaseNow())} and waits in the queue “${run.queue}” for a worker.`;
  const planned = dueAt === null ? queued : `It is planned to start ${formatRelative(dueAt, databaseNow())}.`;
  const ended = run.finishedAt === null ? planned : `It was ${run.status} before a worker took it.`;
  return <NothingYet>{ended} Its steps appear here as soon as a worker executes them.</NothingYet>;
}

function NothingYet({ children }: { readonly children: ComponentChildren }) {
  return (
    <Empty title="This run has not begun" icon="clock">
      {children}
    </Empty>
  );
}
