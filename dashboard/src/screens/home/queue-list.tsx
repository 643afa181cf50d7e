/** The queues that have the most to do, by how long their oldest run has been due. */
import type { Answer } from "../../api/api.js";
import { href } from "../../router/router.js";
import { escapeHidden, formatCapped, formatCount } from "../../ui/format.js";
import { Loading, Section } from "../../ui/page.js";
import { Table } from "../../ui/table.js";
import { formatDuration } from "../../ui/time.js";
import css from "./side.module.css";

type Queue = Answer<"listQueues">["queues"][number];

const maxShown = 6;

const busiestFirst = (a: Queue, b: Queue): number =>
  Number(b.paused !== null) - Number(a.paused !== null) ||
  (b.oldestAgeMs ?? -1) - (a.oldestAgeMs ?? -1) ||
  b.executing - a.executing ||
  a.name.localeCompare(b.name);

export function QueueList({ queues }: { readonly queues: readonly Queue[] | undefined }) {
  const shown = [...(queues ?? [])].sort(busiestFirst).slice(0, maxShown);
  const more = (queues?.length ?? 0) - shown.length;
  const aside = <a href={href("/queues")}>{more > 0 ? `All ${formatCount(queues?.length ?? 0)}` : "Open"}</a>;
  return (
    <Section title="Queues" aside={aside} isFlush>
      {queues === undefined ? <Loading /> : null}
      {queues?.length === 0 ? <p class={css.none}>There are no queues yet: a worker registers them.</p> : null}
      {shown.length === 0 ? null : (
        <Table
          label="Queues"
          rows={shown}
          keyOf={({ name }) => name}
          columns={[
            {
              title: "Queue",
              cell: ({ name, paused }) => (
                <span class={css.name}>
                  {escapeHidden(name)}
                  {paused === null ? null : <span class={css.paused}>paused</span>}
                </span>
              ),
            },
            { title: "Due", isNumber: true, cell: ({ depth, depthCapped }) => formatCapped(depth, depthCapped) },
            {
              title: "Oldest due",
              isNumber: true,
              cell: ({ oldestAgeMs }) => (oldestAgeMs === null ? "–" : formatDuration(oldestAgeMs)),
            },
            { title: "Running", isNumber: true, cell: ({ executing }) => formatCount(executing) },
          ]}
        />
      )}
    </Section>
  );
}
