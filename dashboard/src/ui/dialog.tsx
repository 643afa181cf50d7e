/** A modal dialog: the native element, so the browser keeps the focus inside and closes it with Escape. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { IconButton } from "./button.js";
import css from "./dialog.module.css";
import { escapeHidden } from "./format.js";

export function Dialog({
  title,
  onClose,
  children,
  footer,
  isWide = false,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly footer?: ComponentChildren;
  readonly isWide?: boolean;
}) {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    element.current?.showModal();
    return () => opener?.focus();
  }, []);
  return (
    <dialog
      ref={element}
      class={`${css.dialog} ${isWide ? css.wide : ""}`}
      aria-label={escapeHidden(title)}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        // The backdrop belongs to the dialog element itself.
        if (event.target === element.current) onClose();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <div class={css.inside}>
        <div class={css.head}>
          <h2>{escapeHidden(title)}</h2>
          <IconButton icon="close" label="Close" onClick={onClose} />
        </div>
        <div class={css.body}>{children}</div>
        {footer === undefined ? null : <div class={css.footer}>{footer}</div>}
      </div>
    </dialog>
  );
}
