/** Every event of the run in order. Of a long log, only the windows that come into view are read. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { location, setSearch } from "../../../router/router.js";
import { Empty } from "../../../ui/page.js";
import { VirtualRows } from "../../../ui/virtual-rows.js";
import { hasEnded } from "../header/run-words.js";
import type { RunTabProps } from "../tab-props.js";
import { EventDetail } from "./event-detail.js";
import { EventRow } from "./event-row.js";
import { hasWords, isInGroup } from "./event-words.js";
import css from "./log.module.css";
import { LogFilter } from "./log-filter.js";
import { type LogWindows, logOf, type RunEvent } from "./log-windows.js";

const rowHeight = 28;
const settleMs = 40;

export function Log({ run, lastEvent, asOf, onSelectStep }: RunTabProps) {
  const log = useMemo(() => logOf(run.id), [run.id]);
  const version = log.version.value;
  // The end of a run is an event, too, which is not among the stored ones.
  const total = lastEvent + (hasEnded(run) ? 1 : 0);
  const { search } = location.value;
  const group = search.get("events") ?? "";
  const text = (search.get("find") ?? "").trim().toLowerCase();
  const isFiltered = group !== "" || text !== "";
  const found = useMemo(
    () => (isFiltered ? filtered(log.loaded(), group, text) : null),
    [isFiltered, group, text, version, log],
  );
  const count = found?.length ?? total;
  const selectedSeq = Number(search.get("seq") ?? Number.NaN);
  const selectedIndex = found === null ? selectedSeq - 1 : found.findIndex(({ seq }) => seq === selectedSeq);
  const loadSoon = useDelayedLoad(log);
  const [isFollowing, setFollowing] = useState(false);
  const scroller = useFollow(isFollowing, count, () => setFollowing(false));
  const select = (seq: number | null) => setSearch({ seq: seq === null ? null : String(seq) }, { replace: true });
  const seqAt = (index: number) => found?.[index]?.seq ?? index + 1;
  const moveBy = (step: number) => {
    if (count === 0) return;
    const from = selectedIndex >= 0 ? selectedIndex + step : step > 0 ? 0 : count - 1;
    select(seqAt(Math.min(count - 1, Math.max(0, from))));
  };
  if (total === 0)
    return (
      <Empty title="Nothing has happened yet" icon="clock">
        The first event is written when a worker begins the run. The line at the top says why none has.
      </Empty>
    );
  return (
    <div class={css.log}>
      <LogFilter
        log={log}
        total={total}
        group={group}
        found={found}
        isFollowing={isFollowing}
        onFollow={setFollowing}
      />
      <div class={`${css.columns} ${Number.isNaN(selectedSeq) ? "" : css.open}`}>
        <section
          ref={scroller}
          class={css.scroller}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
          tabIndex={0}
          aria-label="Events"
          onKeyDown={(event) => {
            if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
            event.preventDefault();
            moveBy(event.key === "ArrowDown" ? 1 : -1);
          }}
        >
          <VirtualRows
            count={count}
            rowHeight={rowHeight}
            label="Events of the run"
            selected={selectedIndex >= 0 ? selectedIndex : null}
            onRange={({ first, last }) => {
              if (found === null) loadSoon(first + 1, last + 1, total);
            }}
            render={(index) => (
              <EventRow
                key={seqAt(index)}
                seq={seqAt(index)}
                event={found?.[index] ?? log.event(index + 1)}
                error={log.errorAt(seqAt(index))}
                isSelected={index === selectedIndex}
                isLater={asOf !== null && seqAt(index) > asOf}
                onSelect={() => select(seqAt(index))}
                onRetry={() => void log.retry(seqAt(index), total)}
              />
            )}
          />
          {count === 0 ? (
            <p class={css.none}>
              No event that has been read fits. {log.loadedCount < total ? "Search on above." : ""}
            </p>
          ) : null}
        </section>
        {Number.isNaN(selectedSeq) ? null : (
          <EventDetail
            key={selectedSeq}
            log={log}
            seq={selectedSeq}
            total={total}
            onSelectStep={onSelectStep}
            onClose={() => select(null)}
          />
        )}
      </div>
    </div>
  );
}

function filtered(events: Iterable<RunEvent>, group: string, text: string): readonly RunEvent[] {
  const words = text === "" ? [] : text.split(/\s+/);
  return [...events].filter((event) => isInGroup(event, group) && hasWords(event, words));
}

/** Windows that a fast scroll only passes are not read. */
function useDelayedLoad(log: LogWindows): LogWindows["load"] {
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return async (first, last, total) => {
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => void log.load(first, last, total), settleMs);
  };
}

/** Keeps the end of a scrolled list in view while events are added, until the person scrolls up. */
function useFollow(isFollowing: boolean, count: number, stop: () => void) {
  const scroller = useRef<HTMLElement>(null);
  useEffect(() => {
    const element = scroller.current;
    if (!isFollowing || element === null) return;
    element.scrollTo(0, element.scrollHeight);
    let top = element.scrollTop;
    const onScroll = () => {
      if (element.scrollTop < top) stop();
      top = element.scrollTop;
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => element.removeEventListener("scroll", onScroll);
  }, [isFollowing, count]);
  return scroller;
}
