/** What the server says about the page, and what the person has chosen. */
import { effect, signal } from "@preact/signals";

interface PageSettings {
  /** The name of the environment, such as "production". */
  readonly label?: string;
  readonly color?: string;
  readonly title?: string;
}

export const pageSettings: PageSettings = readPageSettings();

function readPageSettings(): PageSettings {
  const text = document.querySelector<HTMLMetaElement>('meta[name="pawl-settings"]')?.content ?? "{}";
  return JSON.parse(text) as PageSettings;
}

/** A choice that this browser remembers. A browser without storage forgets it with the page. */
function remembered<T extends string>(name: string, values: readonly [T, ...T[]]) {
  const key = `pawl.${name}`;
  const choice = signal<T>(values[0]);
  try {
    const stored = localStorage.getItem(key) as T | null;
    if (stored !== null && values.includes(stored)) choice.value = stored;
    effect(() => localStorage.setItem(key, choice.value));
  } catch {
    // Storage is switched off.
  }
  return choice;
}

export const themes = ["system", "light", "dark"] as const;
export const theme = remembered("theme", themes);
export const timeStyles = ["relative", "local", "utc"] as const;
export const timeStyle = remembered("times", timeStyles);

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

/** The next value of a choice, for buttons that go through all of them. */
export const nextOf = <T>(values: readonly T[], current: T): T =>
  values[(values.indexOf(current) + 1) % values.length] as T;
