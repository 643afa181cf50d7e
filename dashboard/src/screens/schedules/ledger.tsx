/** The ledger of a schedule: every occurrence and what became of it, the newest first, a page at a time. */
import type { Answer } from "../../api/api.js";
import { schedulePath } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { location, runHref, setSearch } from "../../router/router.js";
import { Button } from "../../ui/button.js";
import { Id } from "../../ui/copy.js";
import { escapeHidden, plural } from "../../ui/format.js";
import { Empty, Failure, Loading, Section } from "../../ui/page.js";
import { type Column, Table } from "../../ui/table.js";
import { Time } from "../../ui/time.js";
import { Outcome } from "./outcome.js";
import { ledgerPageSize, type Occurrence } from "./schedule.js";
import css from "./schedule.module.css";
import { instantTexts, kindOf, specialsOf } from "./schedule-words.js";

type Page = Answer<"listOccurrences">;

export function Ledger({ name, zone }: { readonly name: string; readonly zone: string }) {
  const cursor = location.value.search.get("ledger");
  const { data, error } = useQuery<Page>(
    schedulePath(name, "occurrences"),
    { limit: ledgerPageSize, cursor },
    { keepPrevious: true },
  );
  const occurrences = data?.occurrences ?? [];
  // The strip above says that there is nothing yet.
  if (data !== undefined && occurrences.length === 0 && cursor === null) return null;
  return (
    <Section
      title="Ledger"
      aside={data === undefined ? undefined : <Pages page={data} cursor={cursor} />}
      isFlush={occurrences.length > 0}
    >
      {data === undefined ? error === null ? <Loading lines={6} /> : <Failure error={error} /> : null}
      {data !== undefined && occurrences.length === 0 ? (
        <Empty title="There are no older rows" icon="schedules" />
      ) : null}
      {occurrences.length === 0 ? null : (
        <div class={css.ledger}>
          <Table label="Ledger" columns={columnsFor(zone)} rows={occurrences} keyOf={({ id }) => id} isStacked />
        </div>
      )}
    </Section>
  );
}

/** The API knows the next page only; the pages before are behind the back button of the browser. */
function Pages({ page: { next, occurrences }, cursor }: { readonly page: Page; readonly cursor: string | null }) {
  if (next === null && cursor === null)
    return occurrences.length === 0 ? null : <span>{plural(occurrences.length, "row")}</span>;
  return (
    <>
      {cursor === null ? null : (
        <Button kind="ghost" icon="left" onClick={() => setSearch({ ledger: null })}>
          Newest
        </Button>
      )}
      {next === null ? (
        <span>the oldest</span>
      ) : (
        <Button kind="ghost" icon="right" onClick={() => setSearch({ ledger: next })}>
          Older
        </Button>
      )}
    </>
  );
}

const columnsFor = (zone: string): readonly Column<Occurrence>[] => [
  { title: "Occurrence", cell: (occurrence) => <Instants occurrence={occurrence} zone={zone} /> },
  { title: "Outcome", cell: (occurrence) => <OutcomeCell {...occurrence} /> },
  {
    title: "Run",
    cell: ({ runId }) => (runId === null ? <span class={css.none}>none</span> : <Id id={runId} to={runHref(runId)} />),
  },
  { title: "About", isMinor: true, cell: (occurrence) => <About {...occurrence} /> },
  { title: "Decided", isMinor: true, cell: ({ at }) => <Time at={at} /> },
];

/** The first and the last of several instants stand below each other. */
function Instants({ occurrence, zone }: { readonly occurrence: Occurrence; readonly zone: string }) {
  const [first, last] = instantTexts(occurrence, zone);
  return (
    <span class={`${css.instants} mono`}>
      <span>{first}</span>
      {last === undefined ? null : <span>to {last}</span>}
    </span>
  );
}

function OutcomeCell(occurrence: Occurrence) {
  const { error } = occurrence;
  return (
    <>
      <Outcome kind={kindOf(occurrence)} />
      {error === null ? null : <p class={css.error}>{escapeHidden(error)}</p>}
    </>
  );
}

function About(occurrence: Occurrence) {
  const text = specialsOf(occurrence);
  return text === "" ? <span class={css.none}>–</span> : text;
}
