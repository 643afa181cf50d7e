/** A value of the user, or why it is not shown: it is large, hidden, or cannot be read. */
import { useState } from "preact/hooks";
import { Button } from "../../../ui/button.js";
import { formatBytes } from "../../../ui/format.js";
import { JsonView } from "../../../ui/json.js";
import { Note } from "../../../ui/page.js";
import css from "./data.module.css";
import { LoadButton } from "./error-view.js";

interface Props {
  readonly value: unknown;
  /** What it is, such as "the input". */
  readonly what: string;
  /** The name of the file that it is saved as, without its end. */
  readonly fileName: string;
  /** Reads the whole value, if it was left out because of its size. */
  readonly load: () => Promise<unknown>;
  readonly isDamaged?: boolean;
}

const tagOf = (value: unknown): { readonly $pawl?: unknown; readonly bytes?: unknown } =>
  typeof value === "object" && value !== null ? value : {};

export function Payload({ value, what, fileName, load, isDamaged = false }: Props) {
  const [whole, setWhole] = useState<{ readonly value: unknown } | null>(null);
  if (isDamaged) return <Damaged what={what} />;
  const shown = whole === null ? value : whole.value;
  const tag = tagOf(shown);
  if (tag.$pawl === "hidden")
    return (
      <Note tone="canceled">
        Hidden: your access does not include <code>payloads</code>. Ask the person who runs this dashboard for it.
      </Note>
    );
  if (tag.$pawl === "large")
    return (
      <div class={css.large}>
        <p>{capitalized(what)} is large, so it is shown only if you ask for it.</p>
        <LoadButton
          label={`Load ${formatBytes(Number(tag.bytes ?? 0))}`}
          load={load}
          onLoaded={(loaded) => setWhole({ value: loaded })}
        />
        <Button icon="download" onClick={() => void load().then((loaded) => saveJson(fileName, loaded))}>
          Download as a file
        </Button>
      </div>
    );
  return (
    <>
      <JsonView value={shown} what={what} />
      {whole === null ? null : (
        <Button icon="download" onClick={() => saveJson(fileName, shown)}>
          Download as a file
        </Button>
      )}
    </>
  );
}

function Damaged({ what }: { readonly what: string }) {
  return (
    <Note tone="failed">
      {capitalized(what)} cannot be read by the process that serves this dashboard: it is damaged, or was written with a
      codec that this process does not have. Give the process the codec of your workers, or run <code>pawl doctor</code>
      .
    </Note>
  );
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Saves a value as a JSON file, on the machine of the person. */
function saveJson(fileName: string, value: unknown): void {
  const url = URL.createObjectURL(new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${fileName}.json`;
  link.click();
  // The browser reads the file a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
