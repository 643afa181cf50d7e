/** Tabs whose choice is in the address. Arrow keys move between them. */
import css from "./tabs.module.css";

export interface Tab {
  readonly id: string;
  readonly label: string;
  readonly count?: number | undefined;
}

export function Tabs({
  label,
  tabs,
  current,
  onChoose,
}: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly current: string;
  readonly onChoose: (id: string) => void;
}) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const index = tabs.findIndex(({ id }) => id === current);
    const next = tabs[(index + step + tabs.length) % tabs.length] as Tab;
    onChoose(next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return (
    <div class={css.tabs} role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(({ id, label: text, count }) => (
        <button
          key={id}
          id={`tab-${id}`}
          type="button"
          role="tab"
          class={css.tab}
          aria-selected={id === current}
          aria-controls="tab-panel"
          tabIndex={id === current ? 0 : -1}
          onClick={() => onChoose(id)}
        >
          {text}
          {count === undefined ? null : <span class={css.count}>{count.toLocaleString("en")}</span>}
        </button>
      ))}
    </div>
  );
}
