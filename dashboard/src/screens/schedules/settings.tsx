/** The settings of a schedule, with what each means. */
import type { ComponentChildren } from "preact";
import type { Answer } from "../../api/api.js";
import { apiUrl, getJson, schedulePath } from "../../api/api.js";
import { href } from "../../router/router.js";
import { CopyButton } from "../../ui/copy.js";
import { escapeHidden, formatCount, plural } from "../../ui/format.js";
import { Section } from "../../ui/page.js";
import { Time } from "../../ui/time.js";
import { Payload } from "../run/data/payload.js";
import type { Schedule } from "./schedule.js";
import css from "./schedule.module.css";
import { catchUpText, overlapWords, spanText } from "./schedule-words.js";

export function Settings({ schedule }: { readonly schedule: Schedule }) {
  return (
    <Section title="Settings">
      <dl class={css.settings}>
        {settingsOf(schedule).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function settingsOf(schedule: Schedule): readonly (readonly [string, ComponentChildren])[] {
  const { workflow, app, cron, everyMs, timeZone, overlap, catchUp, jitterMs, createdAt } = schedule;
  return [
    ["Starts", <a href={href(`/workflows/${encodeURIComponent(workflow)}`)}>{escapeHidden(workflow)}</a>],
    [
      "Owner",
      app === null ? (
        "The API: it belongs to no application, and any worker fires it."
      ) : (
        <>
          The application <strong>{escapeHidden(app)}</strong>, whose code declares it.
        </>
      ),
    ],
    ...(cron === null ? [] : [["Cron", <Cron key="cron" cron={cron} />] as const]),
    ...(everyMs === null ? [] : [["Every", spanText(everyMs)] as const]),
    ["Time zone", escapeHidden(timeZone)],
    ["Overlap", <Policy key="overlap" name={overlap} about={overlapWords[overlap]} />],
    ["Catch-up", <Policy key="catch-up" name={catchUp.mode} about={catchUpText(schedule)} />],
    [
      "Jitter",
      jitterMs === 0
        ? "None: runs start at their instants."
        : `Up to ${spanText(jitterMs)}, the same in every process.`,
    ],
    ["Limits", limitsOf(schedule)],
    ["Input", <Input key="input" schedule={schedule} />],
    ["Created", <Time key="created" at={createdAt} />],
  ];
}

function Cron({ cron }: { readonly cron: string }) {
  return (
    <span class={css.cron}>
      <code>{escapeHidden(cron)}</code>
      <CopyButton text={cron} what="the cron expression" />
    </span>
  );
}

function Policy({ name, about }: { readonly name: string; readonly about: string }) {
  return (
    <>
      <code>{name}</code> <span class={css.muted}>{about}</span>
    </>
  );
}

function limitsOf({ maxRuns, acceptedRuns, pauseOnFailure, failedInARow }: Schedule): string {
  const failures = pauseOnFailure === 1 ? "a failed run" : `${formatCount(pauseOnFailure ?? 0)} failed runs in a row`;
  const parts = [
    maxRuns === null ? null : `Ends after ${plural(maxRuns, "run")} (${formatCount(acceptedRuns)} so far).`,
    pauseOnFailure === null ? null : `Paused after ${failures} (${formatCount(failedInARow)} now).`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? "None: it does not end, and is not paused when runs fail." : parts.join(" ");
}

function Input({ schedule: { name, input, computesInput } }: { readonly schedule: Schedule }) {
  if (computesInput) return <>Computed from the instant by the code of the schedule.</>;
  if (input === null) return <>None</>;
  const load = async () => (await getJson<Answer<"getSchedule">>(apiUrl(schedulePath(name)))).input;
  return <Payload value={input} what="the input" fileName="input" load={load} />;
}
