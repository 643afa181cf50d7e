/** The input while it is being written: in the fields of a form, or as JSON text. */
import { useMemo, useState } from "preact/hooks";
import { parseJson } from "../../../actions/action-dialog.js";
import { type Field, fieldsOf } from "./fields.js";
import { initialTyped, readForm, type Typed, typedFor } from "./form-values.js";

export interface StartInput {
  /** Null: there is no schema that a form could be made of. */
  readonly fields: readonly Field[] | null;
  readonly isForm: boolean;
  readonly typed: Typed;
  readonly json: string;
  /** What would be sent; undefined: no input. */
  readonly value: unknown;
  readonly fieldErrors: Readonly<Record<string, string>>;
  readonly jsonError: string | null;
  /** Why the form could not be shown. */
  readonly note: string | null;
  type(key: string, text: string): void;
  typeJson(text: string): void;
  showJson(): void;
  showForm(): void;
  /** Uses the input of another run. */
  use(value: unknown): void;
}

const noFormNote = "This input has parts that the form has no fields for, so it stays JSON.";

export function useStartInput(schema: unknown): StartInput {
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const [isForm, setForm] = useState(fields !== null);
  const [typed, setTyped] = useState<Typed>(() => (fields === null ? {} : initialTyped(fields)));
  const [json, setJson] = useState("");
  const [note, setNote] = useState<string | null>(null);
  const form = fields === null || !isForm ? null : readForm(fields, typed);
  const parsed = form === null ? parseJson(json) : {};
  const fill = (value: unknown) => {
    const fitting = fields === null ? null : typedFor(fields, value);
    if (fitting !== null) setTyped(fitting);
    return fitting !== null;
  };
  return {
    ...{ fields, isForm: form !== null, typed, json, note },
    value: form === null ? parsed.value : form.value,
    fieldErrors: form?.errors ?? {},
    jsonError: parsed.error ?? null,
    type: (key, text) => setTyped({ ...typed, [key]: text }),
    typeJson: (text) => {
      setJson(text);
      setNote(null);
    },
    showJson: () => {
      if (form !== null) setJson(JSON.stringify(form.value, null, 2));
      setForm(false);
      setNote(null);
    },
    showForm: () => {
      const canShow = json.trim() === "" || (parsed.error === undefined && fill(parsed.value));
      setNote(canShow ? null : parsed.error === undefined ? noFormNote : "Correct the JSON first.");
      setForm(canShow);
    },
    use: (value) => {
      setJson(isNoInput(value) ? "" : JSON.stringify(value, null, 2));
      const canShow = fields !== null && fill(value);
      setForm(canShow);
      setNote(canShow || fields === null ? null : noFormNote);
    },
  };
}

const tagOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null ? (value as { readonly $pawl?: unknown }).$pawl : undefined;

const isNoInput = (value: unknown): boolean => tagOf(value) === "undefined";

/** Inputs that were left out of the answer, or that this person may not see, cannot be used again. */
export const isUsable = (value: unknown): boolean => tagOf(value) !== "hidden" && tagOf(value) !== "large";
