import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import css from "./button.module.css";
import { Icon, type IconName } from "./icon.js";

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "icon" | "label"> {
  readonly kind?: "plain" | "primary" | "danger" | "ghost";
  readonly icon?: IconName;
  readonly children?: ComponentChildren;
}

export function Button({ kind = "plain", icon, children, class: extra, ...rest }: ButtonProps) {
  return (
    <button type="button" class={`${css.button} ${css[kind] ?? ""} ${(extra as string | undefined) ?? ""}`} {...rest}>
      {icon === undefined ? null : <Icon name={icon} size={14} />}
      {children}
    </button>
  );
}

/** A button that shows only an icon. Its label is read by screen readers and shown as a title. */
export function IconButton({
  icon,
  label,
  ...rest
}: ButtonProps & { readonly icon: IconName; readonly label: string }) {
  return (
    <button type="button" {...rest} class={`${css.button} ${css.ghost} ${css.square}`} aria-label={label} title={label}>
      <Icon name={icon} size={14} />
    </button>
  );
}

/** A link that looks like a button. */
export function LinkButton({
  to,
  icon,
  children,
}: {
  readonly to: string;
  readonly icon?: IconName;
  readonly children: ComponentChildren;
}) {
  return (
    <a class={`${css.button} ${css.plain}`} href={to}>
      {icon === undefined ? null : <Icon name={icon} size={14} />}
      {children}
    </a>
  );
}
