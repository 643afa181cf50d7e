/** The command palette: screens, workflows, schedules, limits, runs by id, and the actions of the run that is open. */
import { signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { actionsOfPage } from "../actions/page-actions.js";
import type { Answer } from "../api/api.js";
import { useQuery } from "../api/queries.js";
import { navigate } from "../router/router.js";
import { screens } from "../screens/screens.js";
import { escapeHidden } from "../ui/format.js";
import { Icon, type IconName } from "../ui/icon.js";
import css from "./palette.module.css";
import { nextOf, theme, themes, timeStyle, timeStyles } from "./settings.js";

export const isPaletteOpen = signal(false);

interface Entry {
  readonly label: string;
  readonly hint?: string;
  readonly icon: IconName;
  readonly run: () => void;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const maxShown = 12;

export function Palette() {
  const [text, setText] = useState("");
  const [selected, setSelected] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  const { data } = useQuery<Answer<"listWorkflows">>("v1/workflows");
  const { data: scheduled } = useQuery<Answer<"listSchedules">>("v1/schedules", { maxPayload: 0 });
  const { data: limited } = useQuery<Answer<"listLimits">>("v1/limits");
  useLayoutEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    input.current?.focus();
    return () => opener?.focus();
  }, []);
  const close = () => void (isPaletteOpen.value = false);
  const entries = useMemo(
    () => entriesFor(text.trim(), data?.workflows ?? [], scheduled?.schedules ?? [], limited?.limits ?? []),
    [text, data, scheduled, limited],
  );
  const choose = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    close();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "ArrowDown") setSelected((selected + 1) % Math.max(1, entries.length));
    else if (event.key === "ArrowUp") setSelected((selected - 1 + entries.length) % Math.max(1, entries.length));
    else if (event.key === "Enter") choose(entries[selected]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class={css.palette}
      aria-label="Find anything"
      onCancel={close}
      onKeyDown={onKeyDown}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <input
        ref={input}
        class={css.input}
        placeholder="A screen, a workflow, a schedule, a limit, an action, or the id of a run"
        aria-label="Find anything"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries.length > 0 ? `palette-${selected}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setSelected(0);
        }}
      />
      <div id="palette-list" class={css.list} role="listbox" aria-label="Results">
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the dialog handles the keyboard
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the text field
          <div
            key={`${entry.label} ${entry.hint ?? ""}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === selected}
            class={css.entry}
            onMouseMove={() => setSelected(index)}
            onClick={() => choose(entry)}
          >
            <Icon name={entry.icon} size={14} />
            <span>{escapeHidden(entry.label)}</span>
            {entry.hint === undefined ? null : <span class={css.hint}>{entry.hint}</span>}
          </div>
        ))}
      </div>
      {entries.length === 0 ? <p class={css.none}>Nothing fits. Paste the whole id of a run to open it.</p> : null}
    </dialog>
  );
}

function entriesFor(
  text: string,
  workflows: Answer<"listWorkflows">["workflows"],
  schedules: Answer<"listSchedules">["schedules"],
  limits: Answer<"listLimits">["limits"],
): readonly Entry[] {
  if (uuid.test(text))
    return [{ label: `Open run ${text}`, icon: "runs", run: () => navigate(`/runs/${text.toLowerCase()}`) }];
  const all: Entry[] = [
    ...actionsOfPage.value.map(({ label, icon, run }): Entry => ({ label, icon, run, hint: "this page" })),
    ...screens.flatMap(({ path, nav }) =>
      nav === undefined
        ? []
        : [{ label: nav.label, icon: nav.icon, hint: `g ${nav.key}`, run: () => navigate(path) } satisfies Entry],
    ),
    ...(["paused", "failed", "running", "waiting"] as const).map(
      (status): Entry => ({
        label: `Runs that are ${status}`,
        icon: "filter",
        run: () => navigate(`/runs?q=${encodeURIComponent(`status:${status}`)}`),
      }),
    ),
    ...workflows.flatMap(({ name }): Entry[] => [
      {
        label: name,
        hint: "workflow",
        icon: "workflows",
        run: () => navigate(`/workflows/${encodeURIComponent(name)}`),
      },
      {
        label: `Start ${name}`,
        hint: "workflow",
        icon: "play",
        run: () => navigate(`/workflows/${encodeURIComponent(name)}?start=1`),
      },
    ]),
    ...schedules.map(
      ({ name }): Entry => ({
        label: name,
        hint: "schedule",
        icon: "schedules",
        run: () => navigate(`/schedules/${encodeURIComponent(name)}`),
      }),
    ),
    ...limits.map(
      ({ name }): Entry => ({
        label: name,
        hint: "limit",
        icon: "limits",
        run: () => navigate(`/limits/${encodeURIComponent(name)}`),
      }),
    ),
    { label: "Change the colours", icon: "auto", run: () => void (theme.value = nextOf(themes, theme.value)) },
    {
      label: "Change how times are written",
      icon: "clock",
      run: () => void (timeStyle.value = nextOf(timeStyles, timeStyle.value)),
    },
  ];
  const words = text.toLowerCase().split(/\s+/);
  const fits = ({ label, hint = "" }: Entry) => words.every((word) => `${label} ${hint}`.toLowerCase().includes(word));
  const found = all.filter(fits).slice(0, maxShown);
  if (text === "") return found;
  const search: Entry = {
    label: `Search runs for “${text}”`,
    icon: "search",
    run: () => navigate(`/runs?q=${encodeURIComponent(text)}`),
  };
  return [...found, search];
}
