/** A button that opens a menu: a native popover, so the browser closes it with Escape and a click elsewhere. */
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { Button, IconButton } from "./button.js";
import { Icon, type IconName } from "./icon.js";
import css from "./menu.module.css";

export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly run: () => void;
  readonly isDisabled?: boolean;
  /** What stands at the end of the line, such as the key or why the item is disabled. */
  readonly hint?: string;
}

export function Menu({
  label,
  icon,
  items,
  children,
}: {
  readonly label: string;
  readonly icon?: IconName;
  readonly items: readonly MenuItem[];
  /** The text of the button; without it, the button is only an icon. */
  readonly children?: ComponentChildren;
}) {
  const id = `menu-${useId()}`;
  const list = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLSpanElement>(null);
  const open = () => {
    const element = list.current;
    const anchor = button.current?.getBoundingClientRect();
    if (!element || !anchor) return;
    element.togglePopover();
    const { width, height } = element.getBoundingClientRect();
    element.style.left = `${Math.max(8, Math.min(anchor.right - width, window.innerWidth - width - 8))}px`;
    element.style.top = `${anchor.bottom + height + 8 > window.innerHeight ? Math.max(8, anchor.top - height - 4) : anchor.bottom + 4}px`;
    element.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
  };
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const entries = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
    const index = entries.indexOf(document.activeElement as HTMLElement);
    entries[(index + step + entries.length) % entries.length]?.focus();
  };
  return (
    <span ref={button} class={css.anchor}>
      {children === undefined ? (
        <IconButton icon={icon ?? "more"} label={label} aria-haspopup="menu" onClick={open} />
      ) : (
        <Button {...(icon === undefined ? {} : { icon })} aria-label={label} aria-haspopup="menu" onClick={open}>
          {children}
          <Icon name="down" size={12} />
        </Button>
      )}
      <div ref={list} id={id} popover="auto" class={css.menu} role="menu" aria-label={label} onKeyDown={move}>
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            class={css.item}
            disabled={item.isDisabled === true}
            onClick={() => {
              list.current?.hidePopover();
              item.run();
            }}
          >
            {item.icon === undefined ? <span class={css.gap} /> : <Icon name={item.icon} size={14} />}
            <span>{item.label}</span>
            {item.hint === undefined ? null : <span class={css.hint}>{item.hint}</span>}
          </button>
        ))}
      </div>
    </span>
  );
}
