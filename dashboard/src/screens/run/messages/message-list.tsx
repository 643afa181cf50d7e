/** Signals, commands, pauses and cancellations from the log, the latest first. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Run } from "../../../actions/run-actions.js";
import { runHref } from "../../../router/router.js";
import { Button } from "../../../ui/button.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { Empty, Loading, Section } from "../../../ui/page.js";
import { type Column, Table } from "../../../ui/table.js";
import { Time } from "../../../ui/time.js";
import { hasEnded } from "../header/run-words.js";
import { logOf, type RunEvent, windowSize } from "../log/log-windows.js";
import { consumersOf, isMessage, type Message, messageOf } from "./message-words.js";
import css from "./messages.module.css";

/** More rows than this are behind a button, so that the page stays quick. */
const pageSize = 100;

export function MessageList({
  run,
  lastEvent,
  asOf,
}: {
  readonly run: Run;
  readonly lastEvent: number;
  readonly asOf: number | null;
}) {
  const log = useMemo(() => logOf(run.id), [run.id]);
  const version = log.version.value;
  const total = lastEvent + (hasEnded(run) ? 1 : 0);
  const [examined, setExamined] = useState(windowSize);
  const [shown, setShown] = useState(pageSize);
  const from = Math.max(1, total - examined + 1);
  useEffect(() => void log.load(from, total, total), [log, from, total]);
  const messages = useMemo(() => messagesIn(log.loaded(), from, asOf), [log, version, from, asOf]);
  const isReading = log.event(from) === undefined && log.errorAt(from) === null && total > 0;
  return (
    <Section
      title="Signals and commands"
      isFlush
      aside={from === 1 ? undefined : `in the events ${formatCount(from)} to ${formatCount(total)}`}
    >
      {messages.length > 0 ? (
        <Table
          label="Signals and commands, the latest first"
          columns={columnsFor(run.id)}
          rows={messages.slice(0, shown)}
          keyOf={({ seq }) => String(seq)}
        />
      ) : isReading ? (
        <Loading lines={2} />
      ) : (
        <Empty title="Nobody has sent anything" icon="signal">
          {from === 1 ? "The run has received no signal and no command." : "There is none in the latest events."}
        </Empty>
      )}
      <div class={css.more}>
        {messages.length > shown ? <Button onClick={() => setShown(shown + pageSize)}>Show more</Button> : null}
        {from === 1 ? null : (
          <Button disabled={isReading} onClick={() => setExamined(examined + 5 * windowSize)}>
            {isReading
              ? "Reading…"
              : `Search the ${formatCount(Math.min(5 * windowSize, from - 1))} events before them`}
          </Button>
        )}
      </div>
    </Section>
  );
}

function messagesIn(events: Iterable<RunEvent>, from: number, asOf: number | null): readonly Message[] {
  const known = [...events].filter(({ seq }) => seq >= from && (asOf === null || seq <= asOf));
  const consumers = consumersOf(known);
  return known
    .filter(isMessage)
    .map((event) => messageOf(event, consumers))
    .reverse();
}

const columnsFor = (runId: string): readonly Column<Message>[] => [
  {
    title: "Event",
    cell: ({ seq }) => (
      <a class="mono" href={runHref(runId, { tab: "log", seq: String(seq) })} title="Show it in the log">
        {seq}
      </a>
    ),
  },
  { title: "When", cell: ({ at }) => <Time at={at} />, isMinor: true },
  { title: "What", cell: ({ what }) => escapeHidden(what) },
  { title: "By", cell: ({ by }) => escapeHidden(by ?? ""), isMinor: true },
  { title: "Details", cell: ({ details }) => <span class={css.details}>{escapeHidden(details)}</span> },
  { title: "State", cell: ({ state }) => escapeHidden(state) },
];
