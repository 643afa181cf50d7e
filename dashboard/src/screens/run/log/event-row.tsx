/** One event in the log. */
import type { ApiError } from "../../../api/api.js";
import { timeStyle } from "../../../shell/settings.js";
import { escapeHidden } from "../../../ui/format.js";
import { StatusIcon } from "../../../ui/status.js";
import { formatInstant } from "../../../ui/time.js";
import { stateOf, summaryOf } from "./event-words.js";
import css from "./log.module.css";
import type { RunEvent } from "./log-windows.js";

interface Props {
  readonly seq: number;
  /** Undefined while it is being read. */
  readonly event: RunEvent | undefined;
  readonly error: ApiError | null;
  readonly isSelected: boolean;
  /** Whether it happened after what the page shows. */
  readonly isLater: boolean;
  readonly onSelect: () => void;
  readonly onRetry: () => void;
}

export function EventRow({ seq, event, error, isSelected, isLater, onSelect, onRetry }: Props) {
  if (event === undefined)
    return (
      // biome-ignore lint/a11y/useSemanticElements: the list is made of divisions, because its rows are moved as a whole
      <div role="listitem" class={css.row}>
        <span class={css.seq}>{seq}</span>
        {error === null ? (
          <span class={css.placeholder} />
        ) : (
          <button type="button" class={css.failedRow} onClick={onRetry}>
            This part of the log could not be read: {error.message} Try again
          </button>
        )}
      </div>
    );
  const state = stateOf(event);
  const at = Date.parse(event.at);
  return (
    // biome-ignore lint/a11y/useSemanticElements: as above
    <div role="listitem" class={`${css.row} ${isSelected ? css.selected : ""} ${isLater ? css.later : ""}`}>
      <button type="button" class={css.event} tabIndex={-1} aria-pressed={isSelected} onClick={onSelect}>
        <span class={css.seq}>{seq}</span>
        <span class={css.at} title={formatInstant(at, true, { withMs: true })}>
          {timeOfDay(at)}
        </span>
        <span class={css.icon}>{state === null ? null : <StatusIcon state={state} />}</span>
        <span class={css.type}>{escapeHidden(event.type)}</span>
        <span class={css.node}>
          {event.node === null ? "" : escapeHidden(event.node)}
          {event.attempt !== null && event.attempt > 1 ? (
            <span class={css.attempt}> attempt {event.attempt}</span>
          ) : null}
        </span>
        <span class={css.summary}>{summaryOf(event)}</span>
      </button>
    </div>
  );
}

/** The time with milliseconds; its date is in the title. In a log, relative times would not tell events apart. */
const timeOfDay = (at: number): string => formatInstant(at, timeStyle.value === "utc", { withMs: true }).slice(11, 23);
