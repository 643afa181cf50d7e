/** The latest events about the selected step. Each opens in the log. */
import type { Answer } from "../../../api/api.js";
import { runHref } from "../../../router/router.js";
import { escapeHidden, formatCount, plural } from "../../../ui/format.js";
import { Time } from "../../../ui/time.js";
import { summaryOf } from "../log/event-words.js";
import css from "./step-panel.module.css";

export function StepEvents({ runId, step }: { readonly runId: string; readonly step: Answer<"getRunStep"> }) {
  const { events, eventCount } = step;
  if (events.length === 0) return null;
  return (
    <details class={css.part} open={step.executionCount === 0}>
      <summary class={css.partSummary}>{plural(eventCount, "event")}</summary>
      <ol class={css.list}>
        {events.map((event) => (
          <li key={event.seq} class={css.event}>
            <a
              class={css.number}
              href={runHref(runId, { tab: "log", seq: String(event.seq) })}
              title="Show it in the log"
            >
              {event.seq}
            </a>
            <span>{escapeHidden(event.type)}</span>
            <span class={css.muted}>
              <Time at={event.at} /> {summaryOf(event)}
            </span>
          </li>
        ))}
      </ol>
      {eventCount > events.length ? (
        <p class={css.muted}>The {formatCount(eventCount - events.length)} events before them are in the log.</p>
      ) : null}
    </details>
  );
}
