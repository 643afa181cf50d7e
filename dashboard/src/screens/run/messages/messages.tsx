/** What was said to the run: signals, commands, pauses; what it still waits for; and a form that sends it a signal. */
import { ask } from "../../../actions/action-dialog.js";
import { type Run, runActions } from "../../../actions/run-actions.js";
import type { Answer } from "../../../api/api.js";
import { runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { may } from "../../../shell/me.js";
import { Button } from "../../../ui/button.js";
import { escapeHidden } from "../../../ui/format.js";
import { Section } from "../../../ui/page.js";
import { awaitedSignals, describeWaiting, hasEnded } from "../header/run-words.js";
import type { RunTabProps } from "../tab-props.js";
import { MessageList } from "./message-list.js";
import css from "./messages.module.css";
import { SignalForm } from "./signal-form.js";

export function Messages({ run, lastEvent, asOf }: RunTabProps) {
  const isOpen = !hasEnded(run);
  return (
    <>
      {isOpen ? <Waits run={run} lastEvent={lastEvent} isPresent={asOf === null} /> : null}
      <MessageList run={run} lastEvent={lastEvent} asOf={asOf} />
      {isOpen ? (
        <Section title="Send a signal">
          <SignalForm run={run} isPresent={asOf === null} />
        </Section>
      ) : null}
    </>
  );
}

function Waits({
  run,
  lastEvent,
  isPresent,
}: {
  readonly run: Run;
  readonly lastEvent: number;
  readonly isPresent: boolean;
}) {
  const { data } = useQuery<Answer<"getRunState">>(
    runPath(run.id, "state"),
    { event: lastEvent, maxPayload: 0 },
    { keepPrevious: true },
  );
  const action = runActions.find(({ id }) => id === "signal");
  const unread = data?.signals ?? [];
  const names = awaitedSignals(run);
  const others = run.waitingFor.filter(({ kind }) => kind !== "signal");
  const isAllowed = may("signal") && isPresent;
  return (
    <Section title="Open waits">
      {names.length === 0 ? <p class={css.muted}>The run waits for no signal now.</p> : null}
      <ul class={css.waits}>
        {names.map((name) => (
          <li key={name}>
            <span>
              the signal <strong>{escapeHidden(name)}</strong>
            </span>
            <Button
              icon="signal"
              disabled={!isAllowed}
              {...(isAllowed ? {} : { title: isPresent ? "Your access lacks “signal”." : "You see the past." })}
              onClick={() => action !== undefined && ask({ action, run, lastEvent, signalName: name })}
            >
              Send this signal
            </Button>
          </li>
        ))}
        {others.map((waiting) => (
          <li key={JSON.stringify(waiting)}>{escapeHidden(describeWaiting(waiting))}</li>
        ))}
      </ul>
      {unread.length === 0 ? null : (
        <p class={css.unread}>
          These signals have arrived and are kept, because the run does not wait for them:{" "}
          {escapeHidden([...new Set(unread)].join(", "))}. If you expected the run to take one, compare its name.
        </p>
      )}
    </Section>
  );
}
