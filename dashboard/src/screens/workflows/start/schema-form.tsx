/** The fields of the input. */

import { Select, TextArea, TextField } from "../../../ui/field.js";
import { escapeHidden } from "../../../ui/format.js";
import type { Field } from "./fields.js";
import type { Typed } from "./form-values.js";
import css from "./start.module.css";

interface FormProps {
  readonly fields: readonly Field[];
  readonly typed: Typed;
  readonly errors: Readonly<Record<string, string>>;
  readonly onType: (key: string, text: string) => void;
}

export function SchemaForm({ fields, typed, errors, onType }: FormProps) {
  return (
    <div class={css.fields}>
      {fields.map((field) =>
        field.kind === "object" ? (
          <fieldset key={field.key} class={css.group}>
            <legend>
              {escapeHidden(field.label)}
              {field.isRequired ? "" : " (optional)"}
            </legend>
            {field.description === "" ? null : <p class={css.hint}>{escapeHidden(field.description)}</p>}
            <SchemaForm fields={field.fields} typed={typed} errors={errors} onType={onType} />
          </fieldset>
        ) : (
          <OneField
            key={field.key}
            field={field}
            text={typed[field.key] ?? ""}
            error={errors[field.key] ?? null}
            onType={(text) => onType(field.key, text)}
          />
        ),
      )}
    </div>
  );
}

interface OneFieldProps {
  readonly field: Field;
  readonly text: string;
  readonly error: string | null;
  readonly onType: (text: string) => void;
}

function OneField({ field, text, error, onType }: OneFieldProps) {
  const { kind } = field;
  const shared = {
    label: `${escapeHidden(field.label)}${field.isRequired ? "" : " (optional)"}`,
    ...(hintOf(field) === "" ? {} : { hint: hintOf(field) }),
    error,
    name: field.key,
    value: text,
  };
  if (kind === "choice" || kind === "boolean")
    return <Select {...shared} options={optionsOf(field)} onChange={(event) => onType(event.currentTarget.value)} />;
  if (kind === "list" || kind === "json")
    return (
      <div class={css.wide}>
        <TextArea {...shared} rows={3} onInput={(event) => onType(event.currentTarget.value)} />
      </div>
    );
  const onInput = (event: { readonly currentTarget: HTMLInputElement }) => onType(event.currentTarget.value);
  if (field.format === "date") return <TextField {...shared} type="date" onInput={onInput} />;
  const inputMode = kind === "integer" ? "numeric" : kind === "number" ? "decimal" : "text";
  return <TextField {...shared} type="text" inputMode={inputMode} onInput={onInput} />;
}

function optionsOf({ kind, choices, isRequired, isNullable }: Field): (readonly [string, string])[] {
  const none: readonly [string, string] = ["", isRequired ? (isNullable ? "null" : "Choose …") : "Leave out"];
  const values: (readonly [string, string])[] =
    kind === "boolean"
      ? [
          ["true", "Yes (true)"],
          ["false", "No (false)"],
        ]
      : choices.map((choice, index) => [String(index), escapeHidden(String(choice))] as const);
  return [none, ...values];
}

function hintOf(field: Field): string {
  const { description, kind, isRequired, isNullable, format, item } = field;
  const parts = [
    escapeHidden(description),
    kind === "json" ? "JSON." : "",
    kind === "list" ? `One ${item === "text" ? "text" : "number"} per line.` : "",
    kind === "integer" && description === "" ? "A whole number." : "",
    kind === "number" && description === "" ? "A number." : "",
    format === "date-time" ? "Such as 2026-01-31T09:00:00Z." : "",
    isRequired && isNullable && kind !== "choice" && kind !== "boolean" ? "Empty is null." : "",
  ];
  return parts.filter((part) => part !== "").join(" ");
}
