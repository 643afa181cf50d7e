/** The selected event with its details. */
import { useEffect, useRef } from "preact/hooks";
import { setSearch } from "../../../router/router.js";
import { Button, IconButton } from "../../../ui/button.js";
import { escapeHidden } from "../../../ui/format.js";
import { Empty, Facts, Loading } from "../../../ui/page.js";
import { Time } from "../../../ui/time.js";
import { ErrorView } from "../data/error-view.js";
import { Payload } from "../data/payload.js";
import css from "./log.module.css";
import { type LogWindows, type RunEvent, readEventData } from "./log-windows.js";

interface Props {
  readonly log: LogWindows;
  readonly seq: number;
  readonly total: number;
  readonly onSelectStep: (step: string | null) => void;
  readonly onClose: () => void;
}

export function EventDetail({ log, seq, total, onSelectStep, onClose }: Props) {
  void log.version.value;
  useEffect(() => void log.load(seq, seq, total), [seq, total, log]);
  const element = useRef<HTMLElement>(null);
  // On a narrow screen the details are below the list, where a person would not see that they have opened.
  useEffect(() => element.current?.scrollIntoView({ block: "nearest" }), [seq]);
  const event = log.event(seq);
  return (
    <section ref={element} class={css.detail} aria-label={`Event ${seq}`}>
      <div class={css.detailHead}>
        <h2>
          <span class="mono">{seq}</span> {event === undefined ? "" : escapeHidden(event.type)}
        </h2>
        <IconButton icon="close" label="Close the event" onClick={onClose} />
      </div>
      {event !== undefined ? (
        <Details event={event} runId={log.runId} onSelectStep={onSelectStep} />
      ) : seq > total ? (
        <Empty title="There is no such event" icon="search" />
      ) : (
        <Loading lines={3} />
      )}
    </section>
  );
}

function Details({
  event,
  runId,
  onSelectStep,
}: Pick<Props, "onSelectStep"> & { readonly event: RunEvent; readonly runId: string }) {
  const { seq, node, attempt, outcome, at, data } = event;
  const { error, ...others } = (data ?? {}) as Readonly<Record<string, unknown>>;
  const load = () => readEventData(runId, seq);
  return (
    <>
      <Facts
        facts={[
          ["When", <Time key="at" at={at} withMs />],
          ["About", node === null ? "the run" : escapeHidden(node)],
          ["Attempt", attempt === null ? null : String(attempt)],
          ["Outcome", outcome === null ? null : outcome.replaceAll("_", " ")],
        ]}
      />
      <div class={css.detailActions}>
        {node === null ? null : <Button onClick={() => onSelectStep(node)}>Show the step</Button>}
        <Button icon="clock" onClick={() => setSearch({ event: String(seq) })}>
          See the run as of this event
        </Button>
      </div>
      {error === undefined ? null : <ErrorView error={error} />}
      {Object.keys(others).length === 0 ? (
        error === undefined ? (
          <p class={css.coverage}>The event has no details.</p>
        ) : null
      ) : (
        <Payload value={others} what="the details" fileName={`event-${runId}-${seq}`} load={load} />
      )}
    </>
  );
}
