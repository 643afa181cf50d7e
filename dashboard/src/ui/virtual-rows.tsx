/**
 * A list of any length of which only the visible rows are in the page. Rows have one height, so the position of each is a
 * multiplication, and no measuring is needed.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import css from "./virtual-rows.module.css";

/** Rows beyond the visible ones, so that fast scrolling shows no gap. */
const overscan = 12;

export interface VisibleRange {
  readonly first: number;
  readonly last: number;
}

export function VirtualRows({
  count,
  rowHeight,
  label,
  render,
  onRange,
  selected,
  role = "list",
}: {
  readonly count: number;
  readonly rowHeight: number;
  readonly label: string;
  readonly render: (index: number) => ComponentChildren;
  /** Called when other rows become visible, to load what they show. */
  readonly onRange?: (range: VisibleRange) => void;
  /** The row that is kept in view, such as that of the keyboard. */
  readonly selected?: number | null;
  readonly role?: "list" | "rowgroup";
}) {
  const element = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<VisibleRange>({ first: 0, last: 40 });
  const measure = () => {
    const list = element.current;
    const scroller = list === null ? null : scrollerOf(list);
    if (!list || !scroller) return;
    const top = list.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / rowHeight) - overscan);
    const last = Math.min(count - 1, Math.ceil((-top + scroller.clientHeight) / rowHeight) + overscan);
    setRange((before) => (before.first === first && before.last === last ? before : { first, last }));
  };
  useLayoutEffect(measure, [count, rowHeight]);
  useEffect(() => {
    const scroller = element.current === null ? null : scrollerOf(element.current);
    if (scroller === null) return;
    scroller.addEventListener("scroll", measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(scroller);
    return () => {
      scroller.removeEventListener("scroll", measure);
      observer.disconnect();
    };
  }, [count, rowHeight]);
  useEffect(() => onRange?.(range), [range, count]);
  useEffect(() => {
    const list = element.current;
    const scroller = list === null ? null : scrollerOf(list);
    if (selected === null || selected === undefined || !list || !scroller) return;
    const top = list.getBoundingClientRect().top - scroller.getBoundingClientRect().top + selected * rowHeight;
    if (top < rowHeight * 2) scroller.scrollBy(0, top - rowHeight * 2);
    else if (top + rowHeight * 2 > scroller.clientHeight)
      scroller.scrollBy(0, top + rowHeight * 2 - scroller.clientHeight);
  }, [selected]);
  const last = Math.min(range.last, count - 1);
  const indexes = Array.from({ length: Math.max(0, last - range.first + 1) }, (_, offset) => range.first + offset);
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles take a label
    <div ref={element} class={css.rows} style={{ height: `${count * rowHeight}px` }} role={role} aria-label={label}>
      <div style={{ transform: `translateY(${range.first * rowHeight}px)` }} role="presentation">
        {indexes.map((index) => render(index))}
      </div>
    </div>
  );
}

function scrollerOf(element: HTMLElement): HTMLElement | null {
  for (let parent = element.parentElement; parent !== null; parent = parent.parentElement)
    if (/auto|scroll/.test(getComputedStyle(parent).overflowY)) return parent;
  return document.scrollingElement as HTMLElement | null;
}
