/** Copying: a button, and ids that can be copied. */
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { IconButton } from "./button.js";
import css from "./copy.module.css";
import { escapeHidden } from "./format.js";
import { showToast } from "./toast.js";

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showToast(`Copied ${what}.`);
  } catch {
    // Browsers refuse the clipboard to pages that are not served by HTTPS or from this machine.
    showToast("The browser does not let this page copy; select the text instead.", "failed");
  }
}

export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const isCopied = useMemo(() => signal(false), []);
  useEffect(() => {
    if (!isCopied.value) return;
    const timer = setTimeout(() => {
      isCopied.value = false;
    }, 1_500);
    return () => clearTimeout(timer);
  }, [isCopied.value]);
  const copy = async () => {
    await copyText(text, what);
    isCopied.value = true;
  };
  return <IconButton icon={isCopied.value ? "check" : "copy"} label={`Copy ${what}`} onClick={() => void copy()} />;
}

/** The end of an id tells runs apart; its beginning is the time, which is almost the same for all of today's. */
export const shortId = (id: string): string => (id.length > 12 ? `…${id.slice(-8)}` : id);

export function Id({
  id,
  to,
  isWhole = false,
}: {
  readonly id: string;
  readonly to?: string;
  readonly isWhole?: boolean;
}) {
  const text = isWhole ? id : shortId(id);
  return to === undefined ? (
    <span class={css.id} title={id}>
      {text}
    </span>
  ) : (
    <a class={css.id} href={to} title={id}>
      {text}
    </a>
  );
}

/** A command or a program, with a button that copies it. */
export function Snippet({ code, what }: { readonly code: string; readonly what: string }) {
  return (
    <div class={css.snippet}>
      <pre>
        <code>{escapeHidden(code)}</code>
      </pre>
      <CopyButton text={code} what={what} />
    </div>
  );
}
