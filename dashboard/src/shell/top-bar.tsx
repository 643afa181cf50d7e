/** The bar above every screen: where one is (environment, user), the search, live updates, times and colours. */
import { isPaused, liveState } from "../live/live.js";
import { Button, IconButton } from "../ui/button.js";
import { escapeHidden } from "../ui/format.js";
import { Icon } from "../ui/icon.js";
import { isHelpOpen } from "./keyboard-help.js";
import { me } from "./me.js";
import { isPaletteOpen } from "./palette.js";
import { nextOf, pageSettings, theme, themes, timeStyle, timeStyles } from "./settings.js";
import css from "./top-bar.module.css";

const liveTexts = {
  live: "Live",
  connecting: "Connecting",
  polling: "Every 5 s",
  off: "Updates off",
} as const;

const timeTexts = { relative: "Relative", local: "Local time", utc: "UTC" } as const;
const themeIcons = { system: "auto", light: "sun", dark: "moon" } as const;

export function TopBar() {
  const isReadOnly = me.value?.permissions.every((permission) => permission === "payloads");
  return (
    <header class={css.bar}>
      {pageSettings.label === undefined ? null : (
        <span class={css.label} data-part="label" title={pageSettings.label}>
          {pageSettings.label}
        </span>
      )}
      {isReadOnly ? <span class={css.readOnly}>read only</span> : null}
      <button type="button" class={css.search} onClick={() => void (isPaletteOpen.value = true)}>
        <Icon name="search" size={14} />
        <span>Find a run, a workflow, an action</span>
        <kbd>Ctrl K</kbd>
      </button>
      <div class={css.right}>
        <button
          type="button"
          class={css.live}
          data-live={liveState.value}
          aria-pressed={!isPaused.value}
          title={isPaused.value ? "Switch live updates on" : "Switch live updates off"}
          onClick={() => void (isPaused.value = !isPaused.value)}
        >
          <span class={css.dot} />
          <span>{liveTexts[liveState.value]}</span>
        </button>
        <Button
          kind="ghost"
          title="How times are written"
          aria-label={`Times: ${timeTexts[timeStyle.value]}`}
          onClick={() => void (timeStyle.value = nextOf(timeStyles, timeStyle.value))}
        >
          <Icon name="clock" size={14} />
          <span class={css.wide}>{timeTexts[timeStyle.value]}</span>
        </Button>
        <IconButton
          icon={themeIcons[theme.value]}
          label={`Colours: ${theme.value}`}
          onClick={() => void (theme.value = nextOf(themes, theme.value))}
        />
        <span class={css.wide}>
          <IconButton icon="keyboard" label="Shortcuts" onClick={() => void (isHelpOpen.value = true)} />
        </span>
        {me.value?.user ? <span class={css.user}>{escapeHidden(me.value.user)}</span> : null}
      </div>
    </header>
  );
}
