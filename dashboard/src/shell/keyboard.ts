/** Keyboard shortcuts: components add theirs while they are shown, and the help lists them. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Shortcut {
  /** A key, or two that are pressed one after the other: `j`, `g r`, `Enter`. */
  readonly keys: string;
  readonly about: string;
  readonly run: (event: KeyboardEvent) => void;
}

export const shortcuts = signal<readonly Shortcut[]>([]);

/** How long the first of two keys is remembered. */
const sequenceMs = 1_200;
let firstKey: { readonly key: string; readonly at: number } | null = null;

/** Adds shortcuts while the component is shown. A later component's shortcut wins over an earlier one's. */
export function useShortcuts(added: readonly Shortcut[], dependencies: readonly unknown[]): void {
  useEffect(() => {
    shortcuts.value = [...shortcuts.peek(), ...added];
    return () => {
      shortcuts.value = shortcuts.peek().filter((shortcut) => !added.includes(shortcut));
    };
  }, [...dependencies]);
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Enter and space belong to the link or button that has the focus. */
const isPressed = (event: KeyboardEvent): boolean =>
  (event.key === "Enter" || event.key === " ") &&
  event.target instanceof HTMLElement &&
  event.target.closest("a, button, summary, [role=tab], [role=menuitem]") !== null;

export function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || isTyping(event.target) || isPressed(event)) return;
  // A dialog has the keyboard to itself.
  if (document.querySelector("dialog[open]") !== null) return;
  if (event.ctrlKey || event.metaKey) return;
  const now = performance.now();
  const sequence = firstKey !== null && now - firstKey.at < sequenceMs ? `${firstKey.key} ${event.key}` : null;
  const find = (keys: string) => shortcuts.peek().findLast((shortcut) => shortcut.keys === keys);
  const match = (sequence === null ? undefined : find(sequence)) ?? find(event.key);
  firstKey = match === undefined && event.key.length === 1 ? { key: event.key, at: now } : null;
  if (match === undefined) return;
  event.preventDefault();
  match.run(event);
}
