/** Which columns the list has: in the address if a person has chosen them there, else as this browser remembers them. */
import { useId, useRef } from "preact/hooks";
import { location, setSearch } from "../../router/router.js";
import { Button } from "../../ui/button.js";
import { Checkbox } from "../../ui/field.js";
import css from "./column-choice.module.css";
import { defaultColumns, optionalColumns, type RunColumn } from "./columns.js";

const storageKey = "pawl.runs.columns";

const readStored = (): string | null => {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null;
  }
};

/** The chosen columns, in their usual order. */
export function chosenColumns(): readonly RunColumn[] {
  const text = location.value.search.get("cols") ?? readStored();
  const ids = text === null ? defaultColumns : text.split(",");
  return optionalColumns.filter(({ id }) => ids.includes(id));
}

function choose(ids: readonly string[]): void {
  const text = ids.length === 0 ? "none" : ids.join(",");
  try {
    localStorage.setItem(storageKey, text);
  } catch {
    // Storage is switched off: the address has the choice.
  }
  setSearch({ cols: text }, { replace: true });
}

export function ColumnChoice({ columns }: { readonly columns: readonly RunColumn[] }) {
  const id = `columns-${useId()}`;
  const panel = useRef<HTMLDivElement>(null);
  const open = (event: MouseEvent) => {
    const anchor = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const element = panel.current as HTMLElement;
    element.togglePopover();
    const { width } = element.getBoundingClientRect();
    element.style.left = `${Math.max(8, anchor.right - width)}px`;
    element.style.top = `${anchor.bottom + 4}px`;
    element.querySelector("input")?.focus();
  };
  const chosen = columns.map((column) => column.id);
  return (
    <>
      <Button icon="menu" aria-haspopup="dialog" onClick={open}>
        Columns
      </Button>
      <div ref={panel} id={id} popover="auto" class={css.panel} role="dialog" aria-label="Columns of the list">
        {optionalColumns.map((column) => (
          <Checkbox
            key={column.id}
            label={column.title}
            isChecked={chosen.includes(column.id)}
            onChange={(isChecked) =>
              choose(isChecked ? [...chosen, column.id] : chosen.filter((other) => other !== column.id))
            }
          />
        ))}
        <Button kind="ghost" onClick={() => choose(defaultColumns)}>
          Usual columns
        </Button>
      </div>
    </>
  );
}
