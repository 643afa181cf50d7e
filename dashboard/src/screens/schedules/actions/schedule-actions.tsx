/** What can be done with a schedule: as buttons, in a menu, with keys, in the palette, and as an address (`?do=pause`). */
import type { ComponentType } from "preact";
import { useRef } from "preact/hooks";
import { usePageActions } from "../../../actions/page-actions.js";
import { location, setSearch } from "../../../router/router.js";
import { useShortcuts } from "../../../shell/keyboard.js";
import { may, me } from "../../../shell/me.js";
import { Button } from "../../../ui/button.js";
import { copyText } from "../../../ui/copy.js";
import type { IconName } from "../../../ui/icon.js";
import { Menu, type MenuItem } from "../../../ui/menu.js";
import { showEquivalent } from "../equivalents.js";
import { isDeletable, type Schedule } from "../schedule.js";
import css from "../schedule.module.css";
import { BackfillDialog } from "./backfill-dialog.js";
import { DeleteDialog } from "./delete-dialog.js";
import type { ScheduleDialogProps } from "./dialog-props.js";
import { PauseDialog } from "./pause-dialog.js";
import { ResumeDialog } from "./resume-dialog.js";
import { TriggerDialog } from "./trigger-dialog.js";

interface ScheduleAction {
  readonly id: string;
  readonly label: string;
  readonly icon: IconName;
  /** What cannot be undone has no key. */
  readonly key?: string;
  readonly isInMenu?: boolean;
  readonly dialog: ComponentType<ScheduleDialogProps>;
  /** Why it cannot be done with the schedule as it is; null if it can. */
  readonly refusal: (schedule: Schedule) => string | null;
}

const unlessRetired = ({ status }: Schedule) =>
  status === "retired" ? "It is retired: no code that computes its runs is in force." : null;

const actions: readonly ScheduleAction[] = [
  {
    ...{ id: "resume", label: "Resume", icon: "play", key: "r", dialog: ResumeDialog },
    refusal: ({ status }) => (status === "paused" ? null : "It is not paused."),
  },
  { ...{ id: "trigger", label: "Trigger now", icon: "play", key: "t", dialog: TriggerDialog }, refusal: unlessRetired },
  {
    ...{ id: "pause", label: "Pause", icon: "pause", key: "p", dialog: PauseDialog },
    refusal: ({ status }) =>
      status === "active" || status === "paused" ? null : `It is ${status}, so it starts no runs anyway.`,
  },
  { ...{ id: "backfill", label: "Backfill", icon: "retry", key: "b", dialog: BackfillDialog }, refusal: unlessRetired },
  {
    ...{ id: "delete", label: "Delete", icon: "cross", isInMenu: true, dialog: DeleteDialog },
    refusal: (schedule) => (isDeletable(schedule) ? null : `declared by ${schedule.app}`),
  },
];

/** A paused schedule can be paused again, with another end; that is rare, so the button shows what is likely. */
const isButton = ({ id, isInMenu, refusal }: ScheduleAction, schedule: Schedule): boolean =>
  isInMenu !== true && refusal(schedule) === null && !(id === "pause" && schedule.status === "paused");

export function ScheduleActions({ schedule }: { readonly schedule: Schedule }) {
  const { name, status } = schedule;
  const menu = useRef<HTMLSpanElement>(null);
  const isAllowed = may("schedules");
  const open = (id: string) => setSearch({ do: id });
  const close = () => setSearch({ do: null }, { replace: true });
  const possible = isAllowed ? actions.filter(({ refusal }) => refusal(schedule) === null) : [];
  const { cli, typescript } = showEquivalent(name);
  const copyLink = () => void copyText(window.location.href, "the link");
  const copies: readonly MenuItem[] = [
    { label: "Copy as a command", icon: "terminal", run: () => void copyText(cli, "the command") },
    { label: "Copy as TypeScript", icon: "copy", run: () => void copyText(typescript, "the code") },
    { label: "Copy the link", icon: "link", run: copyLink, hint: "y" },
  ];
  const dependencies = [name, status, schedule.app, isAllowed];
  useShortcuts(
    [
      ...possible.flatMap(({ id, label, key }) =>
        key === undefined ? [] : [{ keys: key, about: `${label}, of this schedule`, run: () => open(id) }],
      ),
      {
        keys: ".",
        about: "Show the actions of the schedule",
        run: () => menu.current?.querySelector<HTMLElement>("[aria-haspopup=menu]")?.click(),
      },
      { keys: "y", about: "Copy the link to this page", run: copyLink },
    ],
    dependencies,
  );
  usePageActions(
    [
      ...possible.map(({ id, label, icon }) => ({ label: `${label}: ${name}`, icon, run: () => open(id) })),
      ...copyActions(copies),
    ],
    dependencies,
  );
  const others = isAllowed ? actions.filter((action) => !isButton(action, schedule) && action.id !== "resume") : [];
  const asked = actions.find(({ id }) => id === location.value.search.get("do"));
  return (
    <div class={css.actions}>
      {possible
        .filter((action) => isButton(action, schedule))
        .map(({ id, label, icon, key }) => (
          <Button
            key={id}
            kind={id === "resume" ? "primary" : "plain"}
            icon={icon}
            title={`${label} (${key})`}
            onClick={() => open(id)}
          >
            {label}
          </Button>
        ))}
      <span ref={menu}>
        <Menu label="More actions" items={[...others.map((action) => itemOf(action, schedule, open)), ...copies]} />
      </span>
      {asked === undefined || me.value === null ? null : (
        <asked.dialog key={asked.id} schedule={schedule} refusal={asked.refusal(schedule)} onClose={close} />
      )}
    </div>
  );
}

const copyActions = (items: readonly MenuItem[]) =>
  items.map(({ label, icon, run }) => ({ label, icon: icon as IconName, run }));

function itemOf(action: ScheduleAction, schedule: Schedule, open: (id: string) => void): MenuItem {
  const { id, icon, key, refusal } = action;
  const why = refusal(schedule);
  const label = id === "pause" && schedule.status === "paused" ? "Change the pause" : action.label;
  const hint = why ?? key;
  return {
    ...{ label, icon, run: () => open(id), isDisabled: why !== null },
    ...(hint === undefined ? {} : { hint }),
  };
}
