/** What runs next by itself: the runs whose time comes soonest. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href, runHref } from "../../router/router.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { escapeHidden } from "../../ui/format.js";
import { Loading, Section } from "../../ui/page.js";
import { Time } from "../../ui/time.js";
import css from "./side.module.css";
import { soonestOf } from "./upcoming.js";

const maxShown = 6;
/** How many of the newest waiting runs are looked at: the API has no list by the time in which runs continue. */
const lookedAt = 200;

export function UpNext() {
  void secondTick.value;
  const query = { explain: true, maxPayload: 0, limit: lookedAt };
  const options = { minIntervalMs: 5_000 };
  const waiting = useQuery<Answer<"listRuns">>("v1/runs", { ...query, status: "waiting" }, options).data;
  const pending = useQuery<Answer<"listRuns">>("v1/runs", { ...query, status: "pending" }, options).data;
  const isLoading = waiting === undefined || pending === undefined;
  const all = [...(waiting?.runs ?? []), ...(pending?.runs ?? [])];
  const soonest = soonestOf(all, databaseNow(), maxShown);
  const isPartial = (waiting?.next ?? pending?.next ?? null) !== null;
  return (
    <Section title="Runs next" aside={<a href={href("/runs?q=status:waiting")}>All waiting</a>} isFlush>
      {isLoading ? <Loading /> : null}
      {!isLoading && soonest.length === 0 ? <p class={css.none}>No run waits for a time.</p> : null}
      <ol>
        {soonest.map(({ run, at }) => (
          <li key={run.id}>
            <a class={css.next} href={runHref(run.id)}>
              <span class={css.when}>
                <Time at={at} />
              </span>
              <span class={css.nextName}>{escapeHidden(run.workflow)}</span>
              <span class={css.why}>{escapeHidden(reasonOf(run))}</span>
            </a>
          </li>
        ))}
      </ol>
      {isPartial ? <p class={css.note}>Of the newest {lookedAt} waiting and pending runs.</p> : null}
    </Section>
  );
}

/** What the run waits for, in a word or two. */
function reasonOf({ status, waitingFor }: Answer<"listRuns">["runs"][number]): string {
  const [first] = waitingFor;
  if (status === "pending" || first === undefined) return "starts";
  switch (first.kind) {
    case "sleep":
      return `ends ${first.name ?? "its sleep"}`;
    case "signal":
      return `gives up on ${first.names?.join(", ") ?? "a signal"}`;
    case "retry":
      return `retries ${first.step ?? "a step"}`;
    default:
      return first.step ?? first.kind;
  }
}
