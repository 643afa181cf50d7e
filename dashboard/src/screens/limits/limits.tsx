/** Limits: how many runs and steps may be executed at a time, what is in use, and what waits. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { location, setSearch } from "../../router/router.js";
import { useShortcuts } from "../../shell/keyboard.js";
import { Button } from "../../ui/button.js";
import { copyText } from "../../ui/copy.js";
import { TextField } from "../../ui/field.js";
import { formatCapped, plural } from "../../ui/format.js";
import { Menu } from "../../ui/menu.js";
import { Empty, Failure, Loading, PageHeading, Section } from "../../ui/page.js";
import { byNeed, type Limit } from "./limit.js";
import { LimitTable } from "./limit-table.js";
import css from "./limits.module.css";
import { NoLimits } from "./no-limits.js";

/** Lists shorter than this need no filter. */
const minForFilter = 8;

/** The keyboard moves between the names of the limits. */
function moveFocus(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>("a[data-limit]")];
  const index = links.indexOf(document.activeElement as HTMLElement);
  const next = index < 0 ? (step === 1 ? 0 : links.length - 1) : index + step;
  links[Math.max(0, Math.min(links.length - 1, next))]?.focus();
}

export function LimitsScreen() {
  useShortcuts(
    [
      { keys: "j", about: "Next limit", run: () => moveFocus(1) },
      { keys: "k", about: "Previous limit", run: () => moveFocus(-1) },
    ],
    [],
  );
  const { data, error } = useQuery<Answer<"listLimits">>("v1/limits");
  return (
    <>
      <PageHeading
        title="Limits"
        about="How many runs and steps may be executed at a time, and how many may begin in a time. What has no free slot waits."
      >
        <Menu
          label="Copy this list as a command or as code"
          icon="terminal"
          items={[
            { label: "As a command", icon: "terminal", run: () => void copyText("pawl limits", "the command") },
            {
              label: "As TypeScript",
              icon: "copy",
              run: () => void copyText("const limits = await pawl.limits.list();", "the code"),
            },
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
        <LimitList limits={data.limits} />
      )}
    </>
  );
}

function LimitList({ limits }: { readonly limits: readonly Limit[] }) {
  const name = location.value.search.get("name") ?? "";
  if (limits.length === 0) return <NoLimits />;
  const shown = limits.filter((limit) => limit.name.toLowerCase().includes(name.toLowerCase())).sort(byNeed);
  return (
    <>
      {limits.length >= minForFilter || name !== "" ? (
        <search class={css.filters}>
          <TextField
            label="Name"
            type="search"
            value={name}
            onInput={(event) => setSearch({ name: event.currentTarget.value }, { replace: true })}
          />
        </search>
      ) : null}
      <Section
        title={plural(shown.length, shown.length < limits.length ? "matching limit" : "limit")}
        aside={asideOf(shown)}
        isFlush
      >
        {shown.length === 0 ? (
          <Empty title="No limit has this in its name" icon="filter">
            <Button onClick={() => setSearch({ name: null })}>Show all limits</Button>
          </Empty>
        ) : (
          <LimitTable limits={shown} />
        )}
      </Section>
    </>
  );
}

function asideOf(limits: readonly Limit[]): string {
  const sum = (count: (limit: Limit) => number) => limits.reduce((total, limit) => total + count(limit), 0);
  const inUse = formatCapped(
    sum((limit) => limit.inUse),
    limits.some(({ inUseCapped }) => inUseCapped),
  );
  const overridden = limits.filter(({ override }) => override !== null).length;
  return `${inUse} in use${overridden === 0 ? "" : `, ${overridden} overridden`}`;
}
