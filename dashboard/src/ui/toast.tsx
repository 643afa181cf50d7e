/** Short messages at the edge of the page, such as that a command was accepted. */
import { signal } from "@preact/signals";
import { escapeHidden } from "./format.js";
import { Icon } from "./icon.js";
import css from "./toast.module.css";

type Tone = "completed" | "failed";
interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: Tone;
  readonly link: ToastLink | null;
}

interface ToastLink {
  readonly to: string;
  readonly label: string;
}

const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

export function showToast(text: string, tone: Tone = "completed", link: ToastLink | null = null): void {
  const id = ++lastId;
  toasts.value = [...toasts.value.slice(-2), { id, text, tone, link }];
  setTimeout(
    () => {
      toasts.value = toasts.value.filter((toast) => toast.id !== id);
    },
    tone === "failed" ? 8_000 : 4_000,
  );
}

export function Toasts() {
  return (
    <div class={css.toasts} role="status" aria-live="polite">
      {toasts.value.map(({ id, text, tone, link }) => (
        <div key={id} class={`${css.toast} ${css[tone]}`}>
          <Icon name={tone === "failed" ? "errors" : "check"} size={14} />
          {escapeHidden(text)}
          {link === null ? null : <a href={link.to}>{link.label}</a>}
        </div>
      ))}
    </div>
  );
}
