/** The keys of a limit: what holds their slots, and how many wait for them. */
import { runHref, setSearch } from "../../router/router.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { Bar } from "../../ui/bar.js";
import { Button } from "../../ui/button.js";
import { Id } from "../../ui/copy.js";
import { TextField } from "../../ui/field.js";
import { escapeHidden, formatCapped, formatCount, plural } from "../../ui/format.js";
import { Empty, Section } from "../../ui/page.js";
import { type Column, Table } from "../../ui/table.js";
import { formatRelative, Took } from "../../ui/time.js";
import type { Lane, LimitPage } from "./limit.js";
import css from "./limit.module.css";

interface Props {
  readonly limit: LimitPage;
  /** The only key that is shown; null: all. */
  readonly wanted: string | null;
  readonly cursor: string | null;
}

export function Lanes({ limit, wanted, cursor }: Props) {
  const { lanes, next } = limit;
  const hasPages = next !== null || cursor !== null;
  // A limit without a key has one lane, whose key is empty: nothing to search.
  const isKeyed = wanted !== null || hasPages || lanes.some(({ key }) => key !== "");
  return (
    <>
      {isKeyed && (wanted !== null || hasPages || lanes.length > 5) ? <KeySearch wanted={wanted} /> : null}
      <Section
        title={isKeyed ? plural(lanes.length, "key") : "Slots"}
        aside={hasPages && wanted === null ? <Pages next={next} cursor={cursor} /> : undefined}
        isFlush={lanes.length > 0}
      >
        {lanes.length === 0 ? (
          <Nothing wanted={wanted} />
        ) : (
          <div class={css.lanes}>
            <Table
              label="Keys"
              columns={columnsFor(limit.inForce.concurrency, isKeyed)}
              rows={lanes}
              keyOf={({ key }) => key}
              isStacked
            />
          </div>
        )}
      </Section>
    </>
  );
}

function KeySearch({ wanted }: { readonly wanted: string | null }) {
  return (
    <search class={css.search}>
      <TextField
        label="Key"
        type="search"
        placeholder="The whole key"
        defaultValue={wanted ?? ""}
        onKeyDown={(event) => {
          if (event.key === "Enter") setSearch({ key: event.currentTarget.value || null, after: null });
        }}
        onInput={(event) => {
          if (event.currentTarget.value === "") setSearch({ key: null });
        }}
      />
      {wanted === null ? null : <Button onClick={() => setSearch({ key: null })}>Show all keys</Button>}
    </search>
  );
}

function Nothing({ wanted }: { readonly wanted: string | null }) {
  return wanted === null ? (
    <Empty title="No slot is in use, and nothing waits" icon="done">
      The runs and steps that hold slots, and what waits for them, appear here.
    </Empty>
  ) : (
    <Empty title={`Nothing of “${escapeHidden(wanted)}” is in use or waits`} icon="filter">
      <Button onClick={() => setSearch({ key: null })}>Show all keys</Button>
    </Empty>
  );
}

const columnsFor = (concurrency: number | null, isKeyed: boolean): readonly Column<Lane>[] => [
  ...(isKeyed ? [{ title: "Key", cell: (lane: Lane) => <Key {...lane} /> }] : []),
  { title: "In use", cell: (lane) => <InUse lane={lane} concurrency={concurrency} /> },
  { title: "Held by", cell: (lane) => <Holders {...lane} /> },
  { title: "Waiting", isNumber: true, cell: (lane) => <Waiting {...lane} /> },
  { title: "Next", cell: (lane) => <Next {...lane} /> },
];

function Key({ key }: Lane) {
  return key === "" ? <span class={css.none}>no key</span> : <span class={css.key}>{escapeHidden(key)}</span>;
}

function InUse({ lane: { inUse }, concurrency }: { readonly lane: Lane; readonly concurrency: number | null }) {
  if (concurrency === null) return <span>{formatCount(inUse)}</span>;
  const isOver = inUse > concurrency;
  return (
    <span class={css.inUse}>
      <span>
        {formatCount(inUse)} of {formatCount(concurrency)}
        {isOver ? <span class={css.muted}>, lowered since</span> : null}
      </span>
      <Bar share={inUse / Math.max(1, concurrency)} tone={isOver ? "paused" : "accent"} />
    </span>
  );
}

function Holders({ holders, inUse }: Lane) {
  if (inUse === 0) return <span class={css.none}>none</span>;
  const hidden = inUse - holders.length;
  return (
    <ul class={css.holders}>
      {holders.map(({ runId, step, since }) => (
        <li key={`${runId} ${step ?? ""} ${since}`}>
          <Id id={runId} to={runHref(runId)} />
          {step === null ? null : <span class={css.step}>{escapeHidden(step)}</span>}
          <span class={css.muted}>
            <Took from={since} to={null} />
          </span>
        </li>
      ))}
      {hidden > 0 ? <li class={css.muted}>and {formatCount(hidden)} more</li> : null}
    </ul>
  );
}

function Waiting({ waiting, waitingCapped }: Lane) {
  return <span class={waiting === 0 ? css.none : css.waiting}>{formatCapped(waiting, waitingCapped)}</span>;
}

/** Without a rate, the next one begins when a slot is given back. */
function Next({ nextAt, waiting }: Lane) {
  if (waiting === 0) return <span class={css.none}>–</span>;
  if (nextAt === null) return <span class={css.muted}>when a slot is free</span>;
  void secondTick.value;
  return <span class={css.when}>{formatRelative(Date.parse(nextAt), databaseNow())}</span>;
}

/** The API knows the next page only; the pages before are behind the back button of the browser. */
function Pages({ next, cursor }: { readonly next: string | null; readonly cursor: string | null }) {
  return (
    <>
      {cursor === null ? null : (
        <Button icon="left" onClick={() => setSearch({ after: null })}>
          First page
        </Button>
      )}
      {next === null ? (
        <span>last page</span>
      ) : (
        <Button icon="right" onClick={() => setSearch({ after: next })}>
          Next page
        </Button>
      )}
    </>
  );
}
