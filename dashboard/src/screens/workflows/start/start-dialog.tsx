/**
 * Starts a run: the input from a form or as JSON, the options, and the same as a command and as TypeScript. Nothing is said
 * to have started before the server has said so.
 */
import { useEffect, useState } from "preact/hooks";
import { type Answer, type ApiError, post } from "../../../api/api.js";
import { refreshShown, useQuery } from "../../../api/queries.js";
import { navigate, runHref } from "../../../router/router.js";
import { databaseNow, may } from "../../../shell/me.js";
import { Button, LinkButton } from "../../../ui/button.js";
import { Snippet, shortId } from "../../../ui/copy.js";
import { Dialog } from "../../../ui/dialog.js";
import { TextArea } from "../../../ui/field.js";
import { Menu } from "../../../ui/menu.js";
import { Note } from "../../../ui/page.js";
import { formatRelative } from "../../../ui/time.js";
import { showToast } from "../../../ui/toast.js";
import type { Workflow } from "../workflow-rows.js";
import { sortIssues } from "./issues.js";
import { OptionFields } from "./option-fields.js";
import { Refusal } from "./refusal.js";
import { SchemaForm } from "./schema-form.js";
import css from "./start.module.css";
import { isUsable, type StartInput, useStartInput } from "./start-input.js";
import { noOptions, optionErrors, startBody, toCommand, toTypeScript } from "./start-request.js";

type Started = Answer<"startRun">;

export function StartDialog({ workflow, onClose }: { readonly workflow: Workflow; readonly onClose: () => void }) {
  const input = useStartInput(workflow.inputSchema);
  const [options, setOptions] = useState(noOptions);
  const [isChecked, setChecked] = useState(false);
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const [started, setStarted] = useState<Started | null>(null);
  useEffect(() => {
    // After the dialog has opened, when the browser has focused the button that closes it.
    const frame = requestAnimationFrame(() =>
      document.querySelector<HTMLElement>("dialog[open] :is(input, select, textarea)")?.focus(),
    );
    return () => cancelAnimationFrame(frame);
  }, []);
  const wrongOptions = optionErrors(options);
  const isWrong =
    Object.keys(input.fieldErrors).length > 0 || input.jsonError !== null || Object.keys(wrongOptions).length > 0;
  const issues = sortIssues(error, input.isForm ? input.fields : null);
  const body = startBody(input.value, options);
  const start = async () => {
    setChecked(true);
    if (isWrong) return;
    setSending(true);
    setError(null);
    try {
      const answer = await post<Started>(`v1/workflows/${encodeURIComponent(workflow.name)}/runs`, body);
      refreshShown();
      if (answer.warning === null) showStarted(answer);
      else setStarted(answer);
    } catch (failure) {
      setError(failure as ApiError);
    } finally {
      setSending(false);
    }
  };
  if (started !== null) return <StartedDialog started={started} workflow={workflow.name} onClose={onClose} />;
  return (
    <Dialog
      title={`Start ${workflow.name}`}
      isWide
      onClose={onClose}
      footer={
        <>
          {isChecked && isWrong ? (
            <span class={css.wrong} role="status">
              Nothing was sent: correct the marked fields.
            </span>
          ) : null}
          <Button onClick={onClose}>Close</Button>
          <Button kind="primary" icon="play" disabled={!may("start") || isSending} onClick={() => void start()}>
            {isSending ? "Starting…" : "Start"}
          </Button>
        </>
      }
    >
      {may("start") ? null : (
        <Note tone="paused">You may not start runs: your access lacks “start”. You can still copy the command.</Note>
      )}
      {error === null ? null : <Refusal error={error} others={issues.others} />}
      <InputPart input={input} workflow={workflow.name} isChecked={isChecked} serverIssues={issues.byField} />
      <OptionFields options={options} errors={isChecked ? wrongOptions : {}} onChange={setOptions} />
      <details class={css.same}>
        <summary>The same on the command line and in TypeScript</summary>
        {isWrong ? <p class={css.hint}>This leaves out what is not valid yet.</p> : null}
        <Snippet code={toCommand(workflow.name, body)} what="the command" />
        {body.reason === undefined ? null : <p class={css.hint}>The command line takes no reason.</p>}
        <Snippet code={toTypeScript(workflow.name, body)} what="the code" />
      </details>
    </Dialog>
  );
}

function showStarted({ id, created }: Started): void {
  const text = created ? "The run was started." : "A run with this key exists, so nothing was started. This is it.";
  showToast(text, "completed", { to: runHref(id), label: shortId(id) });
  navigate(`/runs/${encodeURIComponent(id)}`);
}

function InputPart({
  input,
  workflow,
  isChecked,
  serverIssues,
}: {
  readonly input: StartInput;
  readonly workflow: string;
  readonly isChecked: boolean;
  readonly serverIssues: Readonly<Record<string, string>>;
}) {
  return (
    <section class={css.input} aria-label="Input">
      <div class={css.inputHead}>
        <h3>Input</h3>
        <Templates workflow={workflow} onUse={input.use} />
        {input.fields === null ? null : (
          <Button kind="ghost" onClick={input.isForm ? input.showJson : input.showForm}>
            {input.isForm ? "Write JSON instead" : "Use the form"}
          </Button>
        )}
      </div>
      {input.note === null ? null : <Note tone="pending">{input.note}</Note>}
      {input.isForm && input.fields !== null ? (
        <SchemaForm
          fields={input.fields}
          typed={input.typed}
          errors={isChecked ? { ...serverIssues, ...input.fieldErrors } : serverIssues}
          onType={input.type}
        />
      ) : (
        <TextArea
          label="JSON"
          hint={
            input.fields === null
              ? "Empty starts the run without an input. The workflow has registered no schema, so only its code checks this."
              : "Empty starts the run without an input."
          }
          rows={8}
          error={input.jsonError}
          value={input.json}
          onInput={(event) => input.typeJson(event.currentTarget.value)}
        />
      )}
    </section>
  );
}

/** The inputs of the latest runs, because the next input is often almost the same. */
function Templates({ workflow, onUse }: { readonly workflow: string; readonly onUse: (value: unknown) => void }) {
  const { data } = useQuery<Answer<"listRuns">>(
    "v1/runs",
    { workflow, limit: 5, maxPayload: 16_000 },
    { minIntervalMs: 10_000 },
  );
  const runs = (data?.runs ?? []).filter(({ input }) => isUsable(input));
  if (runs.length === 0) return null;
  return (
    <Menu
      label="Recent inputs"
      items={runs.map(({ id, status, createdAt, input }) => ({
        label: `Use the input of ${shortId(id)} (${status}, ${formatRelative(Date.parse(createdAt), databaseNow())})`,
        run: () => onUse(input),
      }))}
    >
      Recent inputs
    </Menu>
  );
}

/** Stays until it is read: a run that no worker takes would otherwise look as if it had failed to start. */
function StartedDialog({
  started,
  workflow,
  onClose,
}: {
  readonly started: Started;
  readonly workflow: string;
  readonly onClose: () => void;
}) {
  return (
    <Dialog
      title={`${started.created ? "Started" : "Already there"}: ${workflow}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <LinkButton to={runHref(started.id)} icon="right">
            Open the run
          </LinkButton>
        </>
      }
    >
      <p>
        {started.created ? "The run was started: " : "A run with this key exists, so nothing was started: "}
        <a href={runHref(started.id)}>{shortId(started.id)}</a>.
      </p>
      <Note tone="paused">{started.warning}</Note>
    </Dialog>
  );
}
