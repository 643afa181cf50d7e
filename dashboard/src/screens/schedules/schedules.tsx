/** Schedules: what starts runs by itself, when it does so next, and what became of the last occurrence. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href, location, setSearch } from "../../router/router.js";
import { useShortcuts } from "../../shell/keyboard.js";
import { Button } from "../../ui/button.js";
import { copyText } from "../../ui/copy.js";
import { Select, TextField } from "../../ui/field.js";
import { escapeHidden, plural } from "../../ui/format.js";
import { Menu } from "../../ui/menu.js";
import { Empty, Failure, Loading, Note, PageHeading, Section } from "../../ui/page.js";
import { listCommand, listTypeScript } from "./equivalents.js";
import { NoSchedules } from "./no-schedules.js";
import { isLate, type Schedule } from "./schedule.js";
import { ScheduleTable } from "./schedule-table.js";
import css from "./schedules.module.css";

type Page = Answer<"listSchedules">;

/** Lists shorter than this need no filters. */
const minForFilters = 6;

interface Filter {
  readonly app: string;
  readonly status: string;
  readonly name: string;
}

const filterIn = (search: URLSearchParams): Filter => ({
  app: search.get("app") ?? "",
  status: search.get("status") ?? "",
  name: search.get("name") ?? "",
});

/** "late" is no status, but what people look for. */
const fits = (schedule: Schedule, { status, name }: Filter): boolean =>
  (status === "" || (status === "late" ? isLate(schedule) : schedule.status === status)) &&
  `${schedule.name} ${schedule.workflow}`.toLowerCase().includes(name.toLowerCase());

/** Late schedules come first; the others stay in the order of their names, so that no row jumps. */
const byNeed = (a: Schedule, b: Schedule) => Number(isLate(b)) - Number(isLate(a)) || (a.name < b.name ? -1 : 1);

/** The keyboard moves between the names of the schedules. */
function moveFocus(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>("a[data-schedule]")];
  const index = links.indexOf(document.activeElement as HTMLElement);
  const next = index < 0 ? (step === 1 ? 0 : links.length - 1) : index + step;
  links[Math.max(0, Math.min(links.length - 1, next))]?.focus();
}

export function SchedulesScreen() {
  useShortcuts(
    [
      { keys: "j", about: "Next schedule", run: () => moveFocus(1) },
      { keys: "k", about: "Previous schedule", run: () => moveFocus(-1) },
    ],
    [],
  );
  const { search } = location.value;
  const filter = filterIn(search);
  const cursor = search.get("cursor");
  const { data, error } = useQuery<Page>("v1/schedules", { app: filter.app, cursor }, { keepPrevious: true });
  return (
    <>
      <PageHeading
        title="Schedules"
        about="What starts runs by itself. A schedule is declared by the code of an application, or put by the API."
      >
        <Menu
          label="Copy this list as a command or as code"
          icon="terminal"
          items={[
            {
              label: "As a command",
              icon: "terminal",
              run: () => void copyText(listCommand(filter.app), "the command"),
            },
            { label: "As TypeScript", icon: "copy", run: () => void copyText(listTypeScript(filter.app), "the code") },
          ]}
        >
          Copy
        </Menu>
      </PageHeading>
      {data === undefined ? (
        error === null ? (
          <Loading lines={6} />
        ) : (
          <Failure error={error} />
        )
      ) : (
        <Schedules page={data} filter={filter} cursor={cursor} />
      )}
    </>
  );
}

function Schedules({
  page,
  filter,
  cursor,
}: {
  readonly page: Page;
  readonly filter: Filter;
  readonly cursor: string | null;
}) {
  const { schedules, next } = page;
  const isFiltered = filter.app !== "" || filter.status !== "" || filter.name !== "";
  if (schedules.length === 0 && !isFiltered && cursor === null) return <NoSchedules />;
  const shown = schedules.filter((schedule) => fits(schedule, filter)).sort(byNeed);
  const late = schedules.filter(isLate);
  const isPaged = next !== null || cursor !== null;
  return (
    <>
      {late.length === 0 ? null : <LateNote late={late} />}
      {isFiltered || isPaged || schedules.length >= minForFilters ? (
        <Filters filter={filter} schedules={schedules} isPaged={isPaged} />
      ) : null}
      <Section
        title={plural(shown.length, shown.length < schedules.length ? "matching schedule" : "schedule")}
        aside={isPaged ? <Pages next={next} cursor={cursor} /> : undefined}
        isFlush
      >
        {shown.length === 0 ? (
          <Empty title="No schedule fits these filters" icon="filter">
            <Button onClick={() => setSearch({ app: null, status: null, name: null, cursor: null })}>
              Show all schedules
            </Button>
          </Empty>
        ) : (
          <ScheduleTable schedules={shown} />
        )}
      </Section>
    </>
  );
}

function LateNote({ late }: { readonly late: readonly Schedule[] }) {
  return (
    <div class={css.note}>
      <Note tone="failed" action={<a href={href("/workers")}>See the workers</a>}>
        <strong>{plural(late.length, "schedule is", "schedules are")} late: </strong>
        {late
          .slice(0, 5)
          .map(({ name }) => escapeHidden(name))
          .join(", ")}
        {late.length > 5 ? ` and ${late.length - 5} more` : ""}. No live worker fires{" "}
        {late.length === 1 ? "it" : "them"}. Start a worker of the application that declares{" "}
        {late.length === 1 ? "it" : "them"}.
      </Note>
    </div>
  );
}

function Filters({
  filter,
  schedules,
  isPaged,
}: {
  readonly filter: Filter;
  readonly schedules: readonly Schedule[];
  readonly isPaged: boolean;
}) {
  const apps = [...new Set([...schedules.flatMap(({ app }) => app ?? []), filter.app])].filter(Boolean).sort();
  return (
    <search class={css.filters}>
      <TextField
        label={isPaged ? "Name or workflow, on this page" : "Name or workflow"}
        type="search"
        value={filter.name}
        onInput={(event) => setSearch({ name: event.currentTarget.value }, { replace: true })}
      />
      <Select
        label={isPaged ? "Status, on this page" : "Status"}
        value={filter.status}
        onChange={(event) => setSearch({ status: event.currentTarget.value })}
        options={[
          ["", "Every status"],
          ["active", "Active"],
          ["late", "Active, and late"],
          ["paused", "Paused"],
          ["retired", "Retired"],
          ["ended", "Ended"],
        ]}
      />
      <Select
        label="Application"
        value={filter.app}
        onChange={(event) => setSearch({ app: event.currentTarget.value, cursor: null })}
        options={[["", "All"], ...apps.map((app) => [app, app] as const)]}
      />
    </search>
  );
}

/** The API knows the next page only; the pages before are behind the back button of the browser. */
function Pages({ next, cursor }: { readonly next: string | null; readonly cursor: string | null }) {
  return (
    <>
      {cursor === null ? null : (
        <Button icon="left" onClick={() => setSearch({ cursor: null })}>
          First page
        </Button>
      )}
      {next === null ? (
        <span>last page</span>
      ) : (
        <Button icon="right" onClick={() => setSearch({ cursor: next })}>
          Next page
        </Button>
      )}
    </>
  );
}
