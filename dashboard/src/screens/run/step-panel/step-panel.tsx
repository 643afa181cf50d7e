/** The selected step: a panel at the side on wide screens, the whole screen on narrow ones. */
import { useEffect, useRef } from "preact/hooks";
import type { Answer } from "../../../api/api.js";
import { apiUrl, getJson, runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { href, runHref } from "../../../router/router.js";
import { useShortcuts } from "../../../shell/keyboard.js";
import { IconButton } from "../../../ui/button.js";
import { CopyButton, Id } from "../../../ui/copy.js";
import { escapeHidden, plural } from "../../../ui/format.js";
import { Empty, Failure, Loading } from "../../../ui/page.js";
import { Status } from "../../../ui/status.js";
import { Payload } from "../data/payload.js";
import type { RunTabProps } from "../tab-props.js";
import { Attempts } from "./attempts.js";
import { StepActions } from "./step-actions.js";
import { StepEvents } from "./step-events.js";
import css from "./step-panel.module.css";

type Step = Answer<"getRunStep">;

export function StepPanel(props: RunTabProps) {
  const { run, asOf, selectedStep, onSelectStep } = props;
  const node = selectedStep as string;
  const { data: step, error } = useQuery<Step>(runPath(run.id, "step"), { node, maxPayload: 16_000 });
  const latest = step?.executions.at(-1);
  const panel = useRef<HTMLElement>(null);
  const close = () => onSelectStep(null);
  useShortcuts([{ keys: "Escape", about: "Close the step", run: close }], [run.id]);
  // On a narrow screen the panel covers the page, so the keyboard must begin in it.
  useEffect(() => {
    if (window.matchMedia("(max-width: 1000px)").matches) panel.current?.focus();
  }, [node]);
  return (
    <aside ref={panel} class={css.panel} aria-label={`Step ${node}`} tabIndex={-1} data-part="step-panel">
      <div class={css.head}>
        <h2>{escapeHidden(step?.name ?? node)}</h2>
        {latest === undefined ? null : <Status state={latest.state} />}
        <IconButton icon="close" label="Close the step (Escape)" onClick={close} />
      </div>
      {step !== undefined ? (
        <StepBody {...props} step={step} />
      ) : error === null ? (
        <Loading />
      ) : (
        <Failure error={error} />
      )}
      {asOf === null ? null : <p class={css.muted}>You see the step as it is now, not as of event {asOf}.</p>}
    </aside>
  );
}

function StepBody({ run, lastEvent, asOf, step }: RunTabProps & { readonly step: Step }) {
  const latest = step.executions.at(-1);
  const load = (field: "input" | "output") => async () =>
    (await getJson<Step>(apiUrl(runPath(run.id, "step"), { node: step.node })))[field];
  const fileName = (field: string) => `${run.id}-${step.name}-${field}`;
  const isCompleted = latest?.state === "completed";
  if (step.executionCount === 0 && step.eventCount === 0)
    return (
      <Empty title="It has not begun" icon="clock">
        The log of the run has no event about this step yet.
      </Empty>
    );
  return (
    <>
      <StepActions run={run} step={step} lastEvent={lastEvent} isPresent={asOf === null} />
      {step.executionCount === 0 ? null : (
        <section class={css.part} aria-label="Attempts">
          <h3>{plural(step.executionCount, "attempt")}</h3>
          <Attempts runId={run.id} step={step} />
        </section>
      )}
      {step.input === null ? null : (
        <section class={css.part} aria-label="Input">
          <h3>Input</h3>
          <Payload value={step.input} what="the input" fileName={fileName("input")} load={load("input")} />
        </section>
      )}
      {isCompleted ? (
        <section class={css.part} aria-label="Output">
          <h3>Output</h3>
          <Payload value={step.output} what="the output" fileName={fileName("output")} load={load("output")} />
        </section>
      ) : null}
      {step.children.length === 0 ? null : <ChildrenOf step={step} />}
      {step.events.some(({ type }) => type.startsWith("map.")) ? (
        <a href={href(`/runs?q=${encodeURIComponent(`parent:${run.id}`)}`)}>All children of the run</a>
      ) : null}
      <Identity step={step} />
      <StepEvents runId={run.id} step={step} />
    </>
  );
}

function ChildrenOf({ step }: { readonly step: Step }) {
  return (
    <section class={css.part} aria-label="Children">
      <h3>Children</h3>
      <ul class={css.list}>
        {step.children.map(({ id, workflow, status }) => (
          <li key={id} class={css.line}>
            <Status state={status} isSmall /> {escapeHidden(workflow)} <Id id={id} to={runHref(id)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Identity({ step }: { readonly step: Step }) {
  const keys = [
    ["Idempotency key", step.idempotencyKey, "the idempotency key"],
    ["Key in the log", step.name === step.node ? null : step.node, "the key"],
  ] as const;
  return (
    <>
      {keys.map(([title, text, what]) =>
        text === null ? null : (
          <section key={title} class={css.part} aria-label={title}>
            <h3>{title}</h3>
            <span class={css.line}>
              <code>{escapeHidden(text)}</code>
              <CopyButton text={text} what={what} />
            </span>
          </section>
        ),
      )}
    </>
  );
}
