/** The status of a run or a step: always an icon, a word and a colour. */
import { Icon, type IconName } from "./icon.js";
import css from "./status.module.css";

export const runStatuses = ["pending", "running", "waiting", "paused", "completed", "failed", "canceled"] as const;
export type RunStatus = (typeof runStatuses)[number];

/** Every state of a run, an execution, a node or a schedule, with the status whose colour and icon it has. */
const looks: Readonly<Record<string, { readonly tone: RunStatus; readonly icon: IconName }>> = {
  pending: { tone: "pending", icon: "circle" },
  scheduled: { tone: "waiting", icon: "clock" },
  running: { tone: "running", icon: "play" },
  executing: { tone: "running", icon: "play" },
  waiting: { tone: "waiting", icon: "clock" },
  paused: { tone: "paused", icon: "pause" },
  completed: { tone: "completed", icon: "check" },
  failed: { tone: "failed", icon: "cross" },
  canceled: { tone: "canceled", icon: "slash" },
  skipped: { tone: "canceled", icon: "skip" },
  removed: { tone: "canceled", icon: "slash" },
  active: { tone: "completed", icon: "clock" },
  retired: { tone: "canceled", icon: "slash" },
  ended: { tone: "canceled", icon: "stop" },
};

/** The status whose colour a state has; its tokens are `--failed`, `--failed-fill` and `--failed-tint`. */
export const toneOf = (state: string): RunStatus => looks[state]?.tone ?? "pending";

export const iconOf = (state: string): IconName => looks[state]?.icon ?? "circle";

export function Status({ state, isSmall = false }: { readonly state: string; readonly isSmall?: boolean }) {
  const { tone, icon } = looks[state] ?? { tone: "pending", icon: "circle" };
  return (
    <span class={`${css.status} ${css[tone]} ${isSmall ? css.small : ""}`} data-status={state}>
      <Icon name={icon} size={12} />
      {state}
    </span>
  );
}

/** The icon alone, for narrow places; screen readers get the word. */
export function StatusIcon({ state }: { readonly state: string }) {
  const { tone, icon } = looks[state] ?? { tone: "pending", icon: "circle" };
  return (
    <span class={`${css.icon} ${css[tone]}`} title={state}>
      <Icon name={icon} size={12} />
      <span class="unseen">{state}</span>
    </span>
  );
}
