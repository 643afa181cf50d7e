/**
 * Asks before an action: what it will cause, why it is done, and what else it needs. The action counts as done only when the
 * server has said so. If the run has changed meanwhile, the dialog says what happened, and nothing was done.
 */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { type Answer, type ApiError, post, runPath } from "../api/api.js";
import { refreshShown } from "../api/queries.js";
import { navigate } from "../router/router.js";
import { may } from "../shell/me.js";
import { Button } from "../ui/button.js";
import { Snippet } from "../ui/copy.js";
import { Dialog } from "../ui/dialog.js";
import { Checkbox, TextArea, TextField } from "../ui/field.js";
import { escapeHidden } from "../ui/format.js";
import { Note } from "../ui/page.js";
import { Time } from "../ui/time.js";
import { showToast } from "../ui/toast.js";
import css from "./action-dialog.module.css";
import type { Run, RunAction } from "./run-actions.js";

interface OpenAction {
  readonly action: RunAction;
  readonly run: Run;
  /** The last event that the person has seen. */
  readonly lastEvent: number | null;
  readonly signalName?: string;
}

const openAction = signal<OpenAction | null>(null);

/** Opens the dialog of an action. */
export function ask(opened: OpenAction): void {
  openAction.value = opened;
}

export function ActionDialog() {
  const opened = openAction.value;
  return opened === null ? null : <OpenDialog key={opened.action.id} {...opened} />;
}

/** Returns the value of a JSON text, or what is wrong with it. Empty text is no value. */
export function parseJson(text: string): { readonly value?: unknown; readonly error?: string } {
  if (text.trim() === "") return {};
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}. Texts need quotes: "like this".` };
  }
}

function OpenDialog({ action, run, lastEvent, signalName }: OpenAction) {
  const waited = run.waitingFor.find(({ kind }) => kind === "signal");
  const [name, setName] = useState(signalName ?? waited?.name ?? waited?.names?.[0] ?? "");
  const [json, setJson] = useState("");
  const [reason, setReason] = useState("");
  const [isForced, setForced] = useState(false);
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const [seenEvent, setSeenEvent] = useState(lastEvent);
  const close = () => void (openAction.value = null);
  const { value, error: jsonError } = parseJson(json);
  const isAllowed = may(action.permission);
  const isComplete = jsonError === undefined && (action.asks !== "signal" || name.trim() !== "");

  const send = async () => {
    setSending(true);
    setError(null);
    try {
      const answer = await post<Partial<Answer<"retryRun">>>(runPath(run.id, action.path), {
        ...action.body,
        ...(reason.trim() === "" ? {} : { reason: reason.trim() }),
        ...(action.isGuarded && seenEvent !== null ? { ifLastEvent: seenEvent } : {}),
        ...(action.asks === "signal" ? { name: name.trim(), payload: value ?? null } : {}),
        ...(action.asks === "output" ? { output: value ?? null } : {}),
        ...(action.asks === "force" && isForced ? { force: true } : {}),
      });
      close();
      refreshShown();
      showToast(acceptedText(action, name));
      if (action.id === "retry" && typeof answer.id === "string") navigate(`/runs/${answer.id}`);
    } catch (failure) {
      setError(failure as ApiError);
      // The dialog shows what has changed, so a person who sends again has seen it.
      setSeenEvent((failure as ApiError).lastEvent ?? seenEvent);
      refreshShown();
    } finally {
      setSending(false);
    }
  };

  return (
    <Dialog
      title={`${action.label}: ${run.workflow}`}
      onClose={close}
      footer={
        <>
          <Button onClick={close}>Close</Button>
          <Button
            kind={action.isDangerous === true ? "danger" : "primary"}
            icon={action.icon}
            disabled={!isAllowed || !isComplete || isSending}
            onClick={() => void send()}
          >
            {isSending ? "Sending…" : action.asks === "signal" ? "Send the signal" : action.label}
          </Button>
        </>
      }
    >
      <p>{escapeHidden(action.consequence(run))}</p>
      {isAllowed ? null : <Note tone="paused">You may not do this: your access lacks “{action.permission}”.</Note>}
      {error === null ? null : <Refusal error={error} />}
      {action.asks === "signal" ? (
        <TextField label="Name of the signal" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      ) : null}
      {action.asks === "signal" || action.asks === "output" ? (
        <TextArea
          label={action.asks === "signal" ? "Payload" : "Output"}
          hint="JSON. Empty is null."
          rows={4}
          error={jsonError ?? null}
          value={json}
          onInput={(event) => setJson(event.currentTarget.value)}
        />
      ) : null}
      <TextField
        label="Reason"
        hint="Recorded in the log of the run, with your name if the server knows it."
        value={reason}
        maxLength={1_000}
        onInput={(event) => setReason(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && isAllowed && isComplete && !isSending) void send();
        }}
      />
      {action.asks === "force" ? (
        <Checkbox
          label="By force: end it at once, without compensation, even if its code does not answer"
          isChecked={isForced}
          onChange={setForced}
        />
      ) : null}
      <details class={css.same}>
        <summary>The same on the command line and in TypeScript</summary>
        <Snippet code={action.cli(run)} what="the command" />
        <Snippet code={action.typescript(run)} what="the code" />
      </details>
    </Dialog>
  );
}

const acceptedText = ({ id, label }: RunAction, signalName: string): string => {
  if (id === "retry") return "A new run was started.";
  return id === "signal" ? `The signal “${signalName}” was accepted.` : `${label}: accepted.`;
};

/** Why nothing was done; for a run that has changed, what happened meanwhile. */
function Refusal({ error }: { readonly error: ApiError }) {
  return (
    <div role="alert" class={css.refusal}>
      <Note tone="failed">
        {error.status === 409 ? <strong>Nothing was done, because the run has changed. </strong> : null}
        {escapeHidden(error.message)}
      </Note>
      {error.changes.length === 0 ? null : (
        <ul class={css.changes} aria-label="What happened meanwhile">
          {error.changes.map(({ seq, type, at, by }) => (
            <li key={seq}>
              <span class="mono">{seq}</span> {type}
              {by ? ` by ${escapeHidden(by)}` : ""} <Time at={at} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
