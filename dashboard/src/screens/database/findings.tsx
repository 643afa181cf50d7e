import { href } from "../../router/router.js";
import { CopyButton } from "../../ui/copy.js";
import { escapeHidden, plural } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import { Section } from "../../ui/page.js";
import css from "./database.module.css";
import type { Database } from "./database-answer.js";

type Check = Database["checks"][number];

const order = { problem: 0, warning: 1, ok: 2 } as const;
const icons = { problem: "cross", warning: "errors", ok: "check" } as const;

/** Where a person sees more about what a check has found. */
const placesOf: Readonly<Record<string, readonly [path: string, text: string]>> = {
  workers: ["/workers", "Workers"],
  queues: ["/queues", "Queues"],
};

const placeOf = ({ name, verdict, text }: Check) => {
  if (verdict === "ok") return undefined;
  if (name === "runs") return / paused: /.test(text) ? pausedRuns : (["/queues", "Queues"] as const);
  return placesOf[name];
};

const pausedRuns = [`/runs?q=${encodeURIComponent("status:paused")}`, "Paused runs"] as const;

/** What `pawl doctor` finds, with what to do; the bad news first. */
export function Findings({ checks }: { readonly checks: readonly Check[] }) {
  const sorted = checks.toSorted((a, b) => order[a.verdict] - order[b.verdict]);
  const bad = checks.filter(({ verdict }) => verdict !== "ok").length;
  return (
    <Section
      title={bad === 0 ? "Nothing needs attention" : `${plural(bad, "finding")} to look at`}
      aside={
        <>
          <code>pawl doctor</code>
          <CopyButton text="pawl doctor" what="the command" />
        </>
      }
      isFlush
    >
      <ul class={css.findings}>
        {sorted.map((check) => (
          <Finding key={`${check.name} ${check.text}`} {...check} />
        ))}
      </ul>
    </Section>
  );
}

function Finding(check: Check) {
  const { name, verdict } = check;
  const place = placeOf(check);
  return (
    <li class={css.finding} data-verdict={verdict}>
      <span class={`${css.verdict} ${css[verdict]}`}>
        <Icon name={icons[verdict]} size={12} />
        {verdict}
      </span>
      <span class={css.checkName}>{name}</span>
      <span class={css.checkText}>{textOf(check)}</span>
      {place === undefined ? null : <a href={href(place[0])}>{place[1]}</a>}
    </li>
  );
}

/** The text of the check of the connection begins with a name. */
const textOf = ({ name, text }: Check): string => {
  const shown = escapeHidden(text);
  return name === "connection" ? shown : shown.charAt(0).toUpperCase() + shown.slice(1);
};
