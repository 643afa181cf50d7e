/** The list of runs. The address is its state: `?q=` the search, `?cols=` the columns, `?from=` the span of the histogram. */
import { useEffect, useMemo } from "preact/hooks";
import { usePageActions } from "../../actions/page-actions.js";
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { location, navigate, setSearch } from "../../router/router.js";
import { toCommand, toTypeScript } from "../../search/equivalents.js";
import { parseSearch, type RunSearch } from "../../search/run-search.js";
import { SearchBar } from "../../search/search-bar.js";
import { useShortcuts } from "../../shell/keyboard.js";
import { may, me } from "../../shell/me.js";
import { Button } from "../../ui/button.js";
import { copyText } from "../../ui/copy.js";
import { formatCapped, plural } from "../../ui/format.js";
import { Menu } from "../../ui/menu.js";
import { Loading, Note, useTitle } from "../../ui/page.js";
import { ColumnChoice, chosenColumns } from "./column-choice.js";
import { ListFailure, NoMatch, NoRuns, SearchProblems } from "./empty-list.js";
import { useIsNarrow } from "./narrow.js";
import { type RunListView, useRunList } from "./run-list-view.js";
import { RunTable } from "./run-table.js";
import css from "./runs.module.css";
import { StatusFilters } from "./status-filters.js";
import { TimeHistogram } from "./time-histogram.js";

export function RunsScreen() {
  useTitle("Runs");
  const text = location.value.search.get("q") ?? "";
  const search = useMemo(() => parseSearch(text), [text]);
  const { data } = useQuery<Answer<"listWorkflows">>("v1/workflows");
  const workflows = useMemo(() => data?.workflows.map(({ name }) => name) ?? [], [data]);
  useEffect(() => {
    if (search.runId !== null) navigate(`/runs/${search.runId}`, { replace: true });
  }, [search]);
  useShortcuts([{ keys: "/", about: "Search runs", run: () => document.getElementById("run-search")?.focus() }], []);
  const hasProblem = search.problems.length > 0;
  return (
    <div class={css.screen}>
      <div class={css.top}>
        <h1>Runs</h1>
        <SearchBar text={text} workflows={workflows} hasProblem={hasProblem} onApply={(q) => setSearch({ q })} />
        <Tools search={search} />
      </div>
      <div class={css.filters}>
        <StatusFilters text={text} search={search} />
      </div>
      <TimeHistogram text={text} filter={search.filter} />
      {hasProblem ? <SearchProblems problems={search.problems} /> : <Results text={text} search={search} />}
    </div>
  );
}

/** The columns, and the same search as a command and as TypeScript. */
function Tools({ search: { filter } }: { readonly search: RunSearch }) {
  const columns = chosenColumns();
  const isNarrow = useIsNarrow();
  const command = toCommand(filter);
  const items = [
    {
      label: command === null ? "CLI command: it has no option for this" : "Copy as CLI command",
      icon: "terminal" as const,
      isDisabled: command === null,
      run: () => void copyText(command ?? "", "the command"),
    },
    {
      label: "Copy as TypeScript",
      icon: "copy" as const,
      run: () => void copyText(toTypeScript(filter), "the TypeScript"),
    },
    {
      label: "Copy the link",
      icon: "link" as const,
      run: () => void copyText(window.location.href, "the link"),
    },
  ];
  usePageActions(
    items.filter((item) => item.isDisabled !== true),
    [filter],
  );
  return (
    <div class={css.tools}>
      {isNarrow ? null : <ColumnChoice columns={columns} />}
      <Menu label="Copy this search" icon="copy" items={items}>
        {isNarrow ? undefined : "Copy"}
      </Menu>
    </div>
  );
}

function Results({ text, search }: { readonly text: string; readonly search: RunSearch }) {
  const view = useRunList(text, search.filter);
  const { list } = view;
  return (
    <>
      {view.readers}
      {me.value !== null && !may("payloads") ? (
        <div class={css.note}>
          <Note tone="pending">
            Your access does not include payloads, so reasons and messages of errors are hidden.
          </Note>
        </div>
      ) : null}
      <div class={css.results}>
        <NewRuns view={view} />
        <Body
          view={view}
          search={search}
          isFiltered={search.tokens.length > 0}
          key={list.pageCount === 0 ? "none" : "list"}
        />
      </div>
    </>
  );
}

function Body({
  view,
  search,
  isFiltered,
}: {
  readonly view: RunListView;
  readonly search: RunSearch;
  readonly isFiltered: boolean;
}) {
  const { list } = view;
  const columns = chosenColumns();
  if (list.pageCount === 0)
    return list.error === null ? (
      <Loading lines={8} />
    ) : (
      <ListFailure error={list.error} isErrorSearch={search.filter.error !== undefined} />
    );
  if (list.rowCount === 0 && list.next === null) return isFiltered ? <NoMatch /> : <NoRuns />;
  return <RunTable view={view} columns={columns} />;
}

/** New runs wait above the list until they are asked for, so that no row moves under the pointer. */
function NewRuns({ view: { newCount, isNewCountCapped, list, showNew } }: { readonly view: RunListView }) {
  if (newCount === 0 && list.goneCount === 0) return null;
  const parts = [
    newCount === 0 ? null : `${formatCapped(newCount, isNewCountCapped)} new`,
    list.goneCount === 0 ? null : `${plural(list.goneCount, "run")} no longer ${list.goneCount === 1 ? "fits" : "fit"}`,
  ];
  return (
    <div class={css.new}>
      <Button icon="up" onClick={showNew} data-part="new">
        {parts.filter((part) => part !== null).join(", ")}
      </Button>
    </div>
  );
}
