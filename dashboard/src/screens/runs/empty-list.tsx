/** What stands in the place of rows: a search that cannot be read, no runs at all, no match, a refused search. */
import type { ApiError } from "../../api/api.js";
import { href, setSearch } from "../../router/router.js";
import { qualifiers } from "../../search/run-search.js";
import { Button } from "../../ui/button.js";
import { Snippet } from "../../ui/copy.js";
import { escapeHidden } from "../../ui/format.js";
import { Empty, Failure } from "../../ui/page.js";
import css from "./empty-list.module.css";

export function SearchProblems({ problems }: { readonly problems: readonly string[] }) {
  return (
    <div class={css.problems} data-state="problem">
      <ul class={css.sentences} aria-live="polite">
        {problems.map((problem) => (
          <li key={problem}>{escapeHidden(problem)}</li>
        ))}
      </ul>
      <h2>What a search can contain</h2>
      <dl class={css.qualifiers}>
        {qualifiers.map(({ name, about, example }) => (
          <div key={name}>
            <dt>
              <button type="button" class={css.example} onClick={() => setSearch({ q: example })}>
                {example}
              </button>
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <p class={css.more}>
        Several together have to fit all. The id of a run alone opens that run. Values with spaces stand in quotes.
      </p>
    </div>
  );
}

export function NoMatch() {
  return (
    <Empty title="No run fits this search" icon="search">
      <p>Remove a part of the search, or look at all runs.</p>
      <p class={css.action}>
        <Button onClick={() => setSearch({ q: null })}>Clear the search</Button>
      </p>
    </Empty>
  );
}

export function NoRuns() {
  return (
    <Empty title="There are no runs yet" icon="runs">
      <p>
        Start one from a terminal, from your code, or with the form of a workflow on{" "}
        <a href={href("/workflows")}>Workflows</a>. It appears here at once.
      </p>
      <div class={css.snippets}>
        <Snippet code={`npx pawl start order '{ "sku": "A-1" }'`} what="the command" />
        <Snippet code={`await pawl.start(order, { sku: "A-1" });`} what="the code" />
      </div>
    </Empty>
  );
}

export function ListFailure({ error, isErrorSearch }: { readonly error: ApiError; readonly isErrorSearch: boolean }) {
  if (error.status !== 403 || !isErrorSearch) return <Failure error={error} />;
  return (
    <Empty title="You cannot search in errors" icon="slash">
      <p>
        error: would tell what hidden messages contain. It needs an access with payloads, and a server that redacts
        nothing. Search with step: or fingerprint: instead, or open <a href={href("/errors")}>Errors</a>, which groups
        runs by their error.
      </p>
      <p class={css.action}>
        <Button onClick={() => setSearch({ q: null })}>Clear the search</Button>
      </p>
    </Empty>
  );
}
