/**
 * Values of users as a tree. Everything is text: nothing of a value ever becomes markup. Values that JSON cannot express are
 * shown by the name of their type, so that a date is not taken for a text.
 */
import { useState } from "preact/hooks";
import { Button } from "./button.js";
import { CopyButton } from "./copy.js";
import { escapeHidden, formatBytes } from "./format.js";
import css from "./json.module.css";

/** How many entries of a list or an object are shown before "more". */
const pageSize = 100;
/** How much of a text is shown before "more". */
const textSize = 2_000;

/** A value that is tagged as in the log: `{ "$pawl": "Date", "v": "…" }`. */
interface Tagged {
  readonly $pawl: string;
  readonly v?: unknown;
  readonly bytes?: number;
}

const isTagged = (value: unknown): value is Tagged =>
  typeof value === "object" && value !== null && typeof (value as Tagged).$pawl === "string";

export function JsonView({ value, what }: { readonly value: unknown; readonly what: string }) {
  return (
    <div class={css.view}>
      <div class={css.tree}>
        <Value value={value} depth={0} />
      </div>
      {value === undefined ? null : <CopyButton text={JSON.stringify(value, null, 2)} what={what} />}
    </div>
  );
}

function Value({ value, depth }: { readonly value: unknown; readonly depth: number }) {
  if (value === undefined) return <span class={css.null}>undefined</span>;
  if (value === null) return <span class={css.null}>null</span>;
  if (typeof value === "string") return <Text text={value} />;
  if (typeof value === "number" || typeof value === "boolean") return <span class={css.scalar}>{String(value)}</span>;
  if (isTagged(value)) return <TaggedValue value={value} depth={depth} />;
  if (Array.isArray(value))
    return <Entries kind="list" entries={value.map((item, index) => [String(index), item])} depth={depth} />;
  return <Entries kind="object" entries={Object.entries(value as object)} depth={depth} />;
}

function TaggedValue({ value, depth }: { readonly value: Tagged; readonly depth: number }) {
  if (value.$pawl === "hidden") return <span class={css.tag}>hidden: your access does not include payloads</span>;
  if (value.$pawl === "large") return <span class={css.tag}>left out: {formatBytes(value.bytes ?? 0)}</span>;
  if (value.$pawl === "Object") return <Value value={value.v} depth={depth} />;
  return (
    <>
      <span class={css.tag}>{escapeHidden(value.$pawl)}</span>{" "}
      {"v" in value ? <Value value={value.v} depth={depth} /> : null}
    </>
  );
}

function Text({ text }: { readonly text: string }) {
  const [shown, setShown] = useState(textSize);
  return (
    <span class={css.text}>
      "{escapeHidden(text.slice(0, shown))}"
      {text.length > shown ? (
        <Button kind="ghost" onClick={() => setShown(shown + 50_000)}>
          … {(text.length - shown).toLocaleString("en")} more characters
        </Button>
      ) : null}
    </span>
  );
}

function Entries({
  kind,
  entries,
  depth,
}: {
  readonly kind: "list" | "object";
  readonly entries: readonly (readonly [string, unknown])[];
  readonly depth: number;
}) {
  const [isOpen, setOpen] = useState(depth < 3 && entries.length <= 50);
  const [shown, setShown] = useState(pageSize);
  const [before, after] = kind === "list" ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return <span class={css.null}>{before + after}</span>;
  const summary = `${entries.length.toLocaleString("en")} ${kind === "list" ? (entries.length === 1 ? "item" : "items") : entries.length === 1 ? "field" : "fields"}`;
  return (
    <span class={css.entries}>
      <button type="button" class={css.toggle} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class={css.arrow}>{isOpen ? "▾" : "▸"}</span>
        <span class={css.null}>{isOpen ? summary : `${before} ${summary} ${after}`}</span>
      </button>
      {isOpen ? (
        <ul class={css.list}>
          {entries.slice(0, shown).map(([name, item]) => (
            <li key={name}>
              <span class={css.name}>{escapeHidden(name)}</span>
              <span class={css.colon}>: </span>
              <Value value={item} depth={depth + 1} />
            </li>
          ))}
          {entries.length > shown ? (
            <li>
              <Button kind="ghost" onClick={() => setShown(shown + 1_000)}>
                {(entries.length - shown).toLocaleString("en")} more
              </Button>
            </li>
          ) : null}
        </ul>
      ) : null}
    </span>
  );
}
