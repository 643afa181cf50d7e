/** A form that sends the run a signal. */
import { useState } from "preact/hooks";
import { parseJson } from "../../../actions/action-dialog.js";
import type { Run } from "../../../actions/run-actions.js";
import { type ApiError, post, runPath } from "../../../api/api.js";
import { refreshShown } from "../../../api/queries.js";
import { may } from "../../../shell/me.js";
import { Button } from "../../../ui/button.js";
import { TextArea, TextField } from "../../../ui/field.js";
import { Note } from "../../../ui/page.js";
import { showToast } from "../../../ui/toast.js";
import { awaitedSignals } from "../header/run-words.js";
import css from "./messages.module.css";

const empty = { name: "", payload: "", key: "", reason: "" };

export function SignalForm({ run, isPresent }: { readonly run: Run; readonly isPresent: boolean }) {
  const [fields, setFields] = useState({ ...empty, name: awaitedSignals(run)[0] ?? "" });
  const [isSending, setSending] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const { value, error: jsonError } = parseJson(fields.payload);
  const isAllowed = may("signal") && isPresent;
  const change = (name: keyof typeof empty) => (event: { readonly currentTarget: { readonly value: string } }) =>
    setFields({ ...fields, [name]: event.currentTarget.value });
  const send = async () => {
    setSending(true);
    setFailure(null);
    try {
      const optional = (name: "key" | "reason") => (fields[name].trim() === "" ? {} : { [name]: fields[name].trim() });
      const name = fields.name.trim();
      await post(runPath(run.id, "signals"), {
        name,
        payload: value ?? null,
        ...optional("key"),
        ...optional("reason"),
      });
      showToast(`The signal “${name}” was accepted.`);
      setFields(empty);
      refreshShown();
    } catch (error) {
      setFailure((error as ApiError).message);
    } finally {
      setSending(false);
    }
  };
  return (
    <form
      class={css.form}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <p class={css.muted}>
        The run gets the signal once. If it does not wait for it yet, the signal is kept until it does.
      </p>
      <TextField label="Name" required value={fields.name} onInput={change("name")} />
      <TextField
        label="Key"
        hint="Optional. A second signal with the same key is dropped."
        value={fields.key}
        onInput={change("key")}
      />
      <div class={css.wide}>
        <TextArea
          label="Payload"
          hint="JSON. Empty is null."
          rows={3}
          error={jsonError ?? null}
          value={fields.payload}
          onInput={change("payload")}
        />
      </div>
      <div class={css.wide}>
        <TextField
          label="Reason"
          hint="Optional. Recorded in the log of the run."
          value={fields.reason}
          onInput={change("reason")}
        />
      </div>
      {failure === null ? null : (
        <div class={css.wide} role="alert">
          <Note tone="failed">{failure}</Note>
        </div>
      )}
      {may("signal") ? null : <p class={css.muted}>You may not send signals: your access lacks “signal”.</p>}
      <div class={css.wide}>
        <Button
          type="submit"
          kind="primary"
          icon="signal"
          disabled={!isAllowed || isSending || fields.name.trim() === "" || jsonError !== undefined}
        >
          {isSending ? "Sending…" : "Send the signal"}
        </Button>
      </div>
    </form>
  );
}
