/** The list of all shortcuts that work on this screen. */
import { signal } from "@preact/signals";
import { Dialog } from "../ui/dialog.js";
import { shortcuts } from "./keyboard.js";
import css from "./keyboard-help.module.css";

export const isHelpOpen = signal(false);

export function KeyboardHelp() {
  const shown = [{ keys: "Ctrl K", about: "Find anything" }, ...shortcuts.value];
  const latest = new Map(shown.map((shortcut) => [shortcut.keys, shortcut]));
  return (
    <Dialog title="Keyboard" onClose={() => void (isHelpOpen.value = false)}>
      <dl class={css.list}>
        {[...latest.values()].map(({ keys, about }) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
