/** The choices above the timeline, what the fills mean, and the way to other windows of a long log. */
import { location, setSearch } from "../../../router/router.js";
import { Button } from "../../../ui/button.js";
import { Checkbox } from "../../../ui/field.js";
import { formatCount } from "../../../ui/format.js";
import bars from "./bar.module.css";
import css from "./timeline.module.css";
import type { Waterfall } from "./waterfall.js";

const fills = [
  ["queue", "Queue"],
  ["execution", "Execution"],
  ["wait", "Wait"],
  ["pause", "Paused"],
  ["lost", "Worker lost"],
] as const;

const replace = { replace: true } as const;

export function Toolbar({
  waterfall,
  windowSize,
  isTable,
}: {
  readonly waterfall: Waterfall;
  readonly windowSize: number;
  readonly isTable: boolean;
}) {
  const isTrueScale = location.value.search.get("scale") === "true";
  const used = new Set(waterfall.rows.flatMap(({ spans }) => spans.map(({ kind }) => kind)));
  return (
    <div class={css.toolbar}>
      <fieldset class={css.choice}>
        <legend class="unseen">Show the timeline as</legend>
        {[false, true].map((asTable) => (
          <button
            key={String(asTable)}
            type="button"
            aria-pressed={asTable === isTable}
            onClick={() => setSearch({ as: asTable ? "table" : null }, replace)}
          >
            {asTable ? "Table" : "Chart"}
          </button>
        ))}
      </fieldset>
      {isTable ? null : (
        <Checkbox
          label="Compress idle time"
          isChecked={!isTrueScale}
          onChange={(isChecked) => setSearch({ scale: isChecked ? null : "true" }, replace)}
        />
      )}
      {isTable ? null : (
        <ul class={css.legend} aria-label="What the bars mean">
          {fills
            .filter(([kind]) => used.has(kind) || kind === "execution" || kind === "wait" || kind === "queue")
            .map(([kind, text]) => (
              <li key={kind}>
                <span class={`${css.swatch} ${bars.bar} ${bars[kind]} ${kind === "execution" ? bars.completed : ""}`} />
                {text}
              </li>
            ))}
        </ul>
      )}
      <Paging {...{ waterfall, windowSize }} />
    </div>
  );
}

function Paging({ waterfall, windowSize }: { readonly waterfall: Waterfall; readonly windowSize: number }) {
  const { firstEvent, lastEvent, hasEarlier, hasLater } = waterfall;
  const isOther = location.value.search.has("after");
  if (firstEvent === null || lastEvent === null || (!hasEarlier && !isOther)) return null;
  const go = (after: number | null) => setSearch({ after: after === null ? null : String(after), open: null }, replace);
  return (
    <div class={css.paging}>
      <span>
        Events {formatCount(firstEvent)}–{formatCount(lastEvent)}
      </span>
      <Button icon="left" disabled={!hasEarlier} onClick={() => go(Math.max(0, firstEvent - 1 - windowSize))}>
        Earlier
      </Button>
      <Button icon="right" disabled={!hasLater} onClick={() => go(lastEvent)}>
        Later
      </Button>
      <Button disabled={!isOther} onClick={() => go(null)}>
        Latest
      </Button>
    </div>
  );
}
