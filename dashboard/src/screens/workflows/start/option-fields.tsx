/** The options of a start, which most starts do not need. */
import { TextField } from "../../../ui/field.js";
import css from "./start.module.css";
import type { StartOptions } from "./start-request.js";

interface OptionFieldsProps {
  readonly options: StartOptions;
  readonly errors: Partial<Record<keyof StartOptions, string>>;
  readonly onChange: (options: StartOptions) => void;
}

interface OptionField {
  readonly name: keyof StartOptions;
  readonly label: string;
  readonly hint: string;
}

const optionFields: readonly OptionField[] = [
  { name: "key", label: "Idempotency key", hint: "The same key starts the workflow once." },
  { name: "delay", label: "Delay", hint: "Such as 30 s, 2 hours or 3 days." },
  { name: "heroType", label: "Type of the hero", hint: "What the run is about, such as User." },
  { name: "heroId", label: "Id of the hero", hint: "Such as 42." },
  { name: "tags", label: "Tags", hint: "Separated by commas." },
  { name: "priority", label: "Priority", hint: "Higher goes first. 0 is usual." },
];

export function OptionFields({ options, errors, onChange }: OptionFieldsProps) {
  const field = ({ name, label, hint }: OptionField) => (
    <TextField
      key={name}
      label={label}
      hint={hint}
      name={name}
      maxLength={name === "reason" ? 1_000 : 200}
      error={errors[name] ?? null}
      value={options[name]}
      onInput={(event) => onChange({ ...options, [name]: event.currentTarget.value })}
    />
  );
  // Opened by errors, too: a mistake that cannot be seen cannot be corrected.
  const hasErrors = Object.keys(errors).length > 0;
  return (
    <>
      <details class={css.options} {...(hasErrors ? { open: true } : {})}>
        <summary>Options: key, delay, hero, tags, priority</summary>
        <div class={css.optionGrid}>{optionFields.map(field)}</div>
      </details>
      {field({
        name: "reason",
        label: "Reason (optional)",
        hint: "Recorded with the run, with your name if the server knows it.",
      })}
    </>
  );
}
