/** What needs a person. Every line opens the list behind it. */
import { useState } from "preact/hooks";
import { href } from "../../router/router.js";
import { Button } from "../../ui/button.js";
import { escapeHidden, formatCount } from "../../ui/format.js";
import { Icon, type IconName } from "../../ui/icon.js";
import { Loading, Section } from "../../ui/page.js";
import { Time } from "../../ui/time.js";
import css from "./attention.module.css";
import type { Concern, ConcernGroup } from "./concerns.js";

/** How many lines of a group are shown before "more". */
const shownFirst = 6;

const icons: Readonly<Record<ConcernGroup["kind"], IconName>> = {
  paused: "pause",
  failed: "cross",
  stuck: "queues",
  schedules: "schedules",
  workers: "workers",
};

export function Attention({ groups }: { readonly groups: readonly ConcernGroup[] | null }) {
  return (
    <Section title="Needs a person" isFlush>
      {groups === null ? <Loading /> : groups.length === 0 ? <Calm /> : null}
      {groups?.map((group) => (
        <Group key={group.kind} group={group} />
      ))}
    </Section>
  );
}

function Calm() {
  return (
    <div class={css.calm} data-state="calm">
      <span class={css.calmIcon}>
        <Icon name="check" />
      </span>
      <div>
        <p class={css.calmTitle}>Nothing needs a person</p>
        <p class={css.detail}>
          No run is paused, none failed in the last 24 hours, every queue is served, and no schedule is late.
        </p>
      </div>
    </div>
  );
}

function Group({ group: { kind, title, to, concerns } }: { readonly group: ConcernGroup }) {
  const [shown, setShown] = useState(shownFirst);
  return (
    <div class={css.group} data-group={kind}>
      <h3 class={css.heading}>
        <a href={href(to)} class={css[kind]}>
          <Icon name={icons[kind]} size={14} />
          {title}
        </a>
      </h3>
      <ul>
        {concerns.slice(0, shown).map((concern) => (
          <Line key={concern.key} concern={concern} />
        ))}
      </ul>
      {concerns.length > shown ? (
        <div class={css.more}>
          <Button kind="ghost" icon="down" onClick={() => setShown(concerns.length)}>
            {formatCount(concerns.length - shown)} more
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function Line({ concern: { count, title, detail, to, isNew, lastAt } }: { readonly concern: Concern }) {
  return (
    <li>
      <a class={css.line} href={href(to)}>
        <span class={css.count}>{count}</span>
        <span class={css.text}>
          <span class={css.title}>{escapeHidden(title)}</span>
          {isNew ? (
            <span class={css.new} title="First seen in the last 24 hours">
              new
            </span>
          ) : null}
          {detail === null ? null : (
            <span class={css.detail} title={escapeHidden(detail)}>
              {escapeHidden(detail)}
            </span>
          )}
        </span>
        <span class={css.time}>{lastAt === null ? null : <Time at={lastAt} />}</span>
      </a>
    </li>
  );
}
