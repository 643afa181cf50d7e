/** Errors of failed and paused runs, grouped: what goes wrong, where, how often, and since when. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { location, setSearch } from "../../router/router.js";
import { Button } from "../../ui/button.js";
import { copyText } from "../../ui/copy.js";
import { Select, TextField } from "../../ui/field.js";
import { plural } from "../../ui/format.js";
import { Menu } from "../../ui/menu.js";
import { Empty, Failure, Loading, Note, PageHeading, Section } from "../../ui/page.js";
import { type ErrorFilter, type ErrorGroup, filterIn, selectGroups, sortings } from "./error-groups.js";
import { ErrorTable } from "./error-table.js";
import css from "./errors.module.css";

type Report = Answer<"listErrors">;

export function ErrorsScreen() {
  const { data, error } = useQuery<Report>("v1/errors");
  const about = "Failed and paused runs, grouped by errors that are alike except for ids, numbers and quoted values.";
  return (
    <>
      <PageHeading title="Errors" about={about}>
        <Menu
          label="Copy this list as a command or as code"
          icon="terminal"
          items={[
            { label: "As a command", icon: "terminal", run: () => void copyText("pawl errors", "the command") },
            { label: "As TypeScript", icon: "copy", run: () => void copyText(typescript, "the code") },
          ]}
        >
          Copy
        </Menu>
      </PageHeading>
      {data === undefined ? error === null ? <Loading lines={8} /> : <Failure error={error} /> : <Errors {...data} />}
    </>
  );
}

const typescript = "const { errors } = await pawl.errors();";

function Errors({ errors, capped }: Report) {
  const filter = filterIn(location.value.search);
  const isFiltered = filter.workflow !== "" || filter.status !== "" || filter.text !== "";
  const shown = selectGroups(errors, filter);
  if (errors.length === 0)
    return (
      <Empty title="No run has failed or is paused because of an error">
        Errors appear here as soon as a step throws one that its retries do not cure.
      </Empty>
    );
  return (
    <>
      <Filters filter={filter} errors={errors} />
      {capped.length === 0 ? null : (
        <div class={css.note}>
          <Note tone="pending">
            Only the newest 10,000 {capped.join(" and the newest 10,000 ")} runs were counted; there are more.
          </Note>
        </div>
      )}
      <Section title={headingOf(shown, isFiltered)} isFlush>
        {shown.length === 0 ? (
          <Empty title="No error fits these filters" icon="filter">
            <Button onClick={() => setSearch({ workflow: null, status: null, text: null })}>Show all errors</Button>
          </Empty>
        ) : (
          <ErrorTable groups={shown} />
        )}
      </Section>
    </>
  );
}

function headingOf(groups: readonly ErrorGroup[], isFiltered: boolean): string {
  const runs = groups.reduce((sum, { count }) => sum + count, 0);
  return `${plural(groups.length, isFiltered ? "matching error" : "error")} in ${plural(runs, "run")}`;
}

function Filters({ filter, errors }: { readonly filter: ErrorFilter; readonly errors: readonly ErrorGroup[] }) {
  const names = new Set([...errors.map(({ workflow }) => workflow), filter.workflow].filter(Boolean));
  const set = (name: string) => (event: { currentTarget: { value: string } }) =>
    setSearch({ [name]: event.currentTarget.value }, { replace: true });
  const workflows = [...names].sort().map((name) => [name, name] as const);
  return (
    <search class={css.filters}>
      <TextField
        label="Text"
        type="search"
        placeholder="A word of the error, the step or the workflow"
        value={filter.text}
        onInput={set("text")}
      />
      <Select
        label="Workflow"
        value={filter.workflow}
        onChange={set("workflow")}
        options={[["", "All workflows"], ...workflows]}
      />
      <Select
        label="Status"
        value={filter.status}
        onChange={set("status")}
        options={[
          ["", "Failed and paused"],
          ["failed", "Failed"],
          ["paused", "Paused"],
        ]}
      />
      <Select
        label="Order"
        value={filter.sort}
        onChange={(event) =>
          setSearch({ sort: event.currentTarget.value === "newest" ? null : event.currentTarget.value })
        }
        options={sortings}
      />
    </search>
  );
}
