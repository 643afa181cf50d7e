/** Fields of forms, with a label, a hint and an error. */
import type { ComponentChildren, ComponentProps } from "preact";
import { useId } from "preact/hooks";
import css from "./field.module.css";
import { escapeHidden } from "./format.js";

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly error?: string | null;
}

function Frame({
  label,
  hint,
  error,
  id,
  children,
}: FieldProps & { readonly id: string; readonly children: ComponentChildren }) {
  return (
    <div class={css.field}>
      <label for={id}>{label}</label>
      {children}
      {error ? (
        <p class={css.error} role="alert" id={`${id}-error`}>
          {error}
        </p>
      ) : null}
      {hint === undefined ? null : <p class={css.hint}>{hint}</p>}
    </div>
  );
}

export function TextField({ label, hint, error, ...rest }: FieldProps & ComponentProps<"input">) {
  const id = useId();
  return (
    <Frame {...{ label, hint, error: error ?? null, id }}>
      <input id={id} class={css.input} aria-invalid={Boolean(error)} autocomplete="off" spellcheck={false} {...rest} />
    </Frame>
  );
}

export function TextArea({ label, hint, error, ...rest }: FieldProps & ComponentProps<"textarea">) {
  const id = useId();
  return (
    <Frame {...{ label, hint, error: error ?? null, id }}>
      <textarea id={id} class={css.area} aria-invalid={Boolean(error)} spellcheck={false} {...rest} />
    </Frame>
  );
}

export function Checkbox({
  label,
  isChecked,
  onChange,
}: {
  readonly label: ComponentChildren;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}) {
  return (
    <label class={css.checkbox}>
      <input type="checkbox" checked={isChecked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

export function Select({
  label,
  hint,
  error,
  options,
  ...rest
}: FieldProps & { readonly options: readonly (readonly [string, string])[] } & ComponentProps<"select">) {
  const id = useId();
  return (
    <Frame {...{ label, hint, error: error ?? null, id }}>
      <select id={id} class={css.input} {...rest}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {escapeHidden(text)}
          </option>
        ))}
      </select>
    </Frame>
  );
}
