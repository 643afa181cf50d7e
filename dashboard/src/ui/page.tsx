/** The parts that every screen is made of: a heading, sections, lists of facts, and what is shown when there is nothing. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { ApiError } from "../api/api.js";
import { pageSettings } from "../shell/settings.js";
import { escapeHidden } from "./format.js";
import { Icon, type IconName } from "./icon.js";
import css from "./page.module.css";

/** Names the page in the tab of the browser, together with what it shows. */
export function useTitle(title: string): void {
  useLayoutEffect(() => {
    document.title = `${escapeHidden(title)} · ${pageSettings.title ?? "Pawl"}`;
  }, [title]);
}

export function PageHeading({
  title,
  children,
  about,
}: {
  readonly title: string;
  /** What the page is about, in one line. */
  readonly about?: ComponentChildren;
  /** Buttons. */
  readonly children?: ComponentChildren;
}) {
  useTitle(title);
  return (
    <header class={css.heading}>
      <div class={css.headingText}>
        <h1>{escapeHidden(title)}</h1>
        {about === undefined ? null : <p class={css.about}>{about}</p>}
      </div>
      <div class={css.headingActions}>{children}</div>
    </header>
  );
}

export function Section({
  title,
  aside,
  children,
  isFlush = false,
}: {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
  /** Whether the content goes up to the border, as tables do. */
  readonly isFlush?: boolean;
}) {
  return (
    <section class={css.section} aria-label={title}>
      <div class={css.sectionHead}>
        <h2>{title}</h2>
        <div class={css.aside}>{aside}</div>
      </div>
      <div class={isFlush ? css.flush : css.body}>{children}</div>
    </section>
  );
}

/** Facts as pairs of a name and a value. Facts without a value are left out. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class={css.facts}>
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Empty({
  title,
  icon = "check",
  children,
}: {
  readonly title: string;
  readonly icon?: IconName;
  /** What to do next. */
  readonly children?: ComponentChildren;
}) {
  return (
    <div class={css.empty} data-state="empty">
      <span class={css.emptyIcon}>
        <Icon name={icon} size={20} />
      </span>
      <p class={css.emptyTitle}>{title}</p>
      <div class={css.emptyText}>{children}</div>
    </div>
  );
}

export function Failure({ error }: { readonly error: ApiError }) {
  return (
    <div class={css.empty} role="alert" data-state="failure">
      <span class={`${css.emptyIcon} ${css.bad}`}>
        <Icon name="errors" size={20} />
      </span>
      <p class={css.emptyTitle}>{error.status === 404 ? "There is nothing here" : "This could not be read"}</p>
      <p class={css.emptyText}>{error.message}</p>
      {error.code === "" ? null : <code>{error.code}</code>}
    </div>
  );
}

/** Grey lines in place of what is being read. */
export function Loading({ lines = 4 }: { readonly lines?: number }) {
  return (
    <div class={css.loading} role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

/** A colored note above other content. */
export function Note({
  tone,
  children,
  action,
}: {
  readonly tone: "paused" | "failed" | "running" | "waiting" | "pending" | "completed" | "canceled";
  readonly children: ComponentChildren;
  readonly action?: ComponentChildren;
}) {
  return (
    <div class={`${css.note} ${css[tone]}`}>
      <div class={css.noteText}>{children}</div>
      {action}
    </div>
  );
}
