/** The card beside the bar that the pointer or the focus is on: exact times and how it ended. */
import { useEffect } from "preact/hooks";
import { timeStyle } from "../../../shell/settings.js";
import css from "./span-card.module.css";
import { rowName, spanFacts, spanTitle } from "./span-text.js";
import type { Row, Span } from "./waterfall.js";

export interface Card {
  readonly row: Row;
  readonly span: Span;
  /** Where the bar is in the window of the browser. */
  readonly place: { readonly left: number; readonly right: number; readonly top: number; readonly bottom: number };
}

const cardWidth = 300;
const cardHeight = 200;

export function SpanCard({
  card,
  until,
  onClose,
}: {
  readonly card: Card;
  readonly until: number;
  readonly onClose: () => void;
}) {
  useEffect(() => {
    const close = (event: KeyboardEvent) => event.key === "Escape" && onClose();
    window.addEventListener("keydown", close);
    return () => window.removeEventListener("keydown", close);
  }, []);
  const { row, span, place } = card;
  const left = Math.max(8, Math.min(place.left, window.innerWidth - cardWidth - 8));
  const isBelow = place.bottom + cardHeight < window.innerHeight;
  const vertical = isBelow ? { top: `${place.bottom + 6}px` } : { bottom: `${window.innerHeight - place.top + 6}px` };
  return (
    // The bar's own label says the same to screen readers.
    <div class={css.card} style={{ left: `${left}px`, maxWidth: `${cardWidth}px`, ...vertical }} aria-hidden="true">
      <p class={css.title}>{rowName(row)}</p>
      <p class={css.what}>{spanTitle(span)}</p>
      <dl>
        {spanFacts(span, until, timeStyle.value === "utc").map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
