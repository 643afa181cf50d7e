/** A slider over the events of the run: the page shows the run as it was after the chosen one. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answer } from "../../../api/api.js";
import { runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { setSearch } from "../../../router/router.js";
import { timeStyle } from "../../../shell/settings.js";
import { Button, IconButton } from "../../../ui/button.js";
import { formatCount } from "../../../ui/format.js";
import { Note } from "../../../ui/page.js";
import css from "./as-of-bar.module.css";
import { clockTime } from "./text-with-times.js";

interface Props {
  readonly runId: string;
  /** How many events there are. */
  readonly total: number;
  readonly asOf: number | null;
}

/** While the slider moves, the server is asked at most this often. */
const settleMs = 150;

export function AsOfBar({ runId, total, asOf }: Props) {
  const [moving, setMoving] = useState<number | null>(null);
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const value = moving ?? asOf ?? total;
  const show = (event: number) => {
    const within = Math.min(total, Math.max(0, Math.round(event)));
    setMoving(within);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      setSearch({ event: String(within) }, { replace: asOf !== null });
      setMoving(null);
    }, settleMs);
  };
  if (total === 0) return null;
  return (
    <div class={css.bar} data-part="as-of">
      {asOf === null ? null : <PastNote runId={runId} asOf={asOf} />}
      <div class={css.controls}>
        <label for="as-of-event">As of event</label>
        <IconButton icon="left" label="The event before" disabled={value <= 0} onClick={() => show(value - 1)} />
        <input
          id="as-of-event"
          class={css.number}
          aria-label="As of event, as a number"
          type="number"
          min={0}
          max={total}
          value={value}
          onChange={(event) => {
            if (event.currentTarget.value !== "") show(event.currentTarget.valueAsNumber);
          }}
        />
        <IconButton icon="right" label="The event after" disabled={value >= total} onClick={() => show(value + 1)} />
        <input
          class={css.slider}
          type="range"
          aria-label="As of event"
          min={0}
          max={total}
          value={value}
          onInput={(event) => show(event.currentTarget.valueAsNumber)}
        />
        <span class={css.total}>of {formatCount(total)}</span>
      </div>
    </div>
  );
}

function PastNote({ runId, asOf }: { readonly runId: string; readonly asOf: number }) {
  const { data, error } = useQuery<Answer<"getRunState">>(
    runPath(runId, "state"),
    { event: asOf, maxPayload: 2_000 },
    { keepPrevious: true },
  );
  const at =
    data === undefined || data.at === null ? "" : `, ${clockTime(Date.parse(data.at), timeStyle.value === "utc")}`;
  return (
    <Note
      tone="paused"
      action={
        <Button icon="clock" onClick={() => setSearch({ event: null })}>
          Back to the present
        </Button>
      }
    >
      {error !== null ? (
        `The run as it was after event ${formatCount(asOf)} could not be read: ${error.message}`
      ) : asOf === 0 ? (
        "You see the run as it was before its first event."
      ) : (
        <>
          You see the run as it was <strong>after event {formatCount(asOf)}</strong>
          {at}. Nothing can be changed meanwhile.
        </>
      )}
    </Note>
  );
}
