/** The filter of the log, what it covers, and the switch that follows the end. */
import { useEffect, useRef, useState } from "preact/hooks";
import { location, setSearch } from "../../../router/router.js";
import { useShortcuts } from "../../../shell/keyboard.js";
import { Button } from "../../../ui/button.js";
import { Checkbox } from "../../../ui/field.js";
import { formatCount, plural } from "../../../ui/format.js";
import { eventGroups } from "./event-words.js";
import css from "./log.module.css";
import { type LogWindows, type RunEvent, windowSize } from "./log-windows.js";

/** How many events one click reads. */
const readPerClick = 5 * windowSize;

interface Props {
  readonly log: LogWindows;
  readonly total: number;
  readonly group: string;
  /** The events that fit; null: there is no filter. */
  readonly found: readonly RunEvent[] | null;
  readonly isFollowing: boolean;
  readonly onFollow: (isFollowing: boolean) => void;
}

export function LogFilter({ log, total, group, found, isFollowing, onFollow }: Props) {
  const input = useRef<HTMLInputElement>(null);
  useShortcuts([{ keys: "/", about: "Filter the log", run: () => input.current?.focus() }], []);
  return (
    <div class={css.filter}>
      <input
        ref={input}
        class={css.find}
        type="search"
        aria-label="Filter the events"
        placeholder="Filter by type, step or text"
        value={location.value.search.get("find") ?? ""}
        onInput={(event) => setSearch({ find: event.currentTarget.value }, { replace: true })}
      />
      <select
        class={css.group}
        aria-label="Kind of events"
        value={group}
        onChange={(event) => setSearch({ events: event.currentTarget.value }, { replace: true })}
      >
        {eventGroups.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      {found === null ? null : <Coverage log={log} total={total} foundCount={found.length} />}
      <div class={css.follow}>
        <Checkbox label="Follow" isChecked={isFollowing} onChange={onFollow} />
      </div>
    </div>
  );
}

/** The server cannot filter, so the filter covers what has been read, and says so. */
function Coverage({
  log,
  total,
  foundCount,
}: {
  readonly log: LogWindows;
  readonly total: number;
  readonly foundCount: number;
}) {
  const [isReading, setReading] = useState(false);
  const { loadedCount } = log;
  const isWhole = loadedCount >= total;
  const readOn = async () => {
    setReading(true);
    for (let read = 0; read < readPerClick; read += windowSize) {
      const next = log.firstMissing(total);
      if (next === null) break;
      await log.load(next, next, total);
    }
    setReading(false);
  };
  // A page that is opened with a filter has read nothing yet.
  useEffect(() => {
    if (log.loadedCount === 0) void readOn();
  }, [log]);
  return (
    <>
      <span class={css.coverage} role="status">
        {plural(foundCount, "event")} {foundCount === 1 ? "fits" : "fit"}
        {isWhole ? "" : `, of the ${formatCount(loadedCount)} of ${formatCount(total)} that have been read`}
      </span>
      {isWhole ? null : (
        <Button disabled={isReading} onClick={() => void readOn()}>
          {isReading ? "Reading…" : `Search ${formatCount(Math.min(readPerClick, total - loadedCount))} more`}
        </Button>
      )}
    </>
  );
}
