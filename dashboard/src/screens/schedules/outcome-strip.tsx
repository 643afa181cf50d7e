/**
 * The last fifty occurrences, from the oldest to the newest. Each has a colour and a sign of its own, and leads to its run. The
 * ledger below tells the same as a table.
 */
import { useRef, useState } from "preact/hooks";
import type { Answer } from "../../api/api.js";
import { schedulePath } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { runHref } from "../../router/router.js";
import { formatCount, plural } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import { Failure, Loading, Section } from "../../ui/page.js";
import { Outcome } from "./outcome.js";
import css from "./outcome-strip.module.css";
import { ledgerPageSize, type Occurrence, type Schedule } from "./schedule.js";
import { aboutOccurrence, kindOf, type OutcomeKind, outcomeLooks } from "./schedule-words.js";
import { isKnownZone, zoneText } from "./zone-time.js";

export function OutcomeStrip({ schedule: { name, timeZone } }: { readonly schedule: Schedule }) {
  const { data, error } = useQuery<Answer<"listOccurrences">>(schedulePath(name, "occurrences"), {
    limit: ledgerPageSize,
  });
  const occurrences = (data?.occurrences ?? []).toReversed();
  return (
    <Section title={titleOf(data)} aside={occurrences.length === 0 ? undefined : <span>the newest at the end</span>}>
      {data === undefined ? error === null ? <Loading lines={2} /> : <Failure error={error} /> : null}
      {data !== undefined && occurrences.length === 0 ? (
        <p class={css.none}>It has had none yet. Here and in a ledger below you will see what becomes of each.</p>
      ) : null}
      {occurrences.length === 0 ? null : <Strip occurrences={occurrences} zone={timeZone} />}
    </Section>
  );
}

function titleOf(data: Answer<"listOccurrences"> | undefined): string {
  if (data === undefined || data.occurrences.length === 0) return "The last occurrences";
  const { length } = data.occurrences;
  return data.next === null && length < ledgerPageSize
    ? plural(length, "occurrence so far", "occurrences so far")
    : `The last ${formatCount(length)} occurrences`;
}

function Strip({ occurrences, zone }: { readonly occurrences: readonly Occurrence[]; readonly zone: string }) {
  const [pointed, setPointed] = useState<string | null>(null);
  const list = useRef<HTMLUListElement>(null);
  const shown = occurrences.find(({ id }) => id === pointed) ?? (occurrences.at(-1) as Occurrence);
  const newestWithRun = occurrences.findLast(({ runId }) => runId !== null)?.id;
  const reached = occurrences.some(({ id, runId }) => id === pointed && runId !== null) ? pointed : newestWithRun;
  const move = (event: KeyboardEvent) => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>("a") ?? [])];
    const index = links.indexOf(document.activeElement as HTMLElement);
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: index - 1,
      ArrowRight: index + 1,
      Home: 0,
      End: links.length - 1,
    };
    const target = targets[event.key];
    if (target === undefined || links[target] === undefined) return;
    event.preventDefault();
    links[target].focus();
  };
  return (
    <div class={css.frame}>
      <ul ref={list} class={css.strip} aria-label="Outcomes, the oldest first" onKeyDown={move}>
        {occurrences.map((occurrence) => (
          <li key={occurrence.id} onMouseEnter={() => setPointed(occurrence.id)} onMouseLeave={() => setPointed(null)}>
            <Cell
              occurrence={occurrence}
              zone={zone}
              isReached={occurrence.id === reached}
              onFocus={() => setPointed(occurrence.id)}
            />
          </li>
        ))}
      </ul>
      <p class={css.pointed} data-part="pointed">
        <Outcome kind={kindOf(shown)} />
        <span>{aboutOccurrence(shown, zone)}</span>
      </p>
      <Legend occurrences={occurrences} />
    </div>
  );
}

function Cell({
  occurrence,
  zone,
  isReached,
  onFocus,
}: {
  readonly occurrence: Occurrence;
  readonly zone: string;
  /** Whether Tab reaches it; arrow keys reach the others. */
  readonly isReached: boolean;
  readonly onFocus: () => void;
}) {
  const kind = kindOf(occurrence);
  const { label, tone, icon } = outcomeLooks[kind];
  const at = zoneText(isKnownZone(zone) ? zone : "UTC", Date.parse(occurrence.scheduledFor));
  const text = `${at}: ${label}${occurrence.count > 1 ? `, ${plural(occurrence.count, "occurrence")}` : ""}`;
  const content = (
    <>
      <Icon name={icon} size={14} />
      {occurrence.count > 1 ? <span class={css.count}>{shortCount(occurrence.count)}</span> : null}
    </>
  );
  const look = { class: `${css.cell} ${css[tone]}`, "data-outcome": kind };
  return occurrence.runId === null ? (
    <span {...look} role="img" aria-label={text}>
      {content}
    </span>
  ) : (
    <a {...look} href={runHref(occurrence.runId)} aria-label={text} tabIndex={isReached ? 0 : -1} onFocus={onFocus}>
      {content}
    </a>
  );
}

const shortCount = (count: number): string => (count < 1_000 ? String(count) : `${Math.floor(count / 1_000)}k`);

/** How often each outcome is in the strip. */
function Legend({ occurrences }: { readonly occurrences: readonly Occurrence[] }) {
  const counts = new Map<OutcomeKind, number>();
  for (const occurrence of occurrences) {
    const kind = kindOf(occurrence);
    counts.set(kind, (counts.get(kind) ?? 0) + occurrence.count);
  }
  return (
    <ul class={css.legend} aria-label="Legend">
      {(Object.keys(outcomeLooks) as OutcomeKind[]).map((kind) =>
        counts.has(kind) ? (
          <li key={kind}>
            <Outcome kind={kind} /> <span class={css.total}>{formatCount(counts.get(kind) as number)}</span>
          </li>
        ) : null,
      )}
    </ul>
  );
}
