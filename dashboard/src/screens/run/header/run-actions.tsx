/** What can be done with the run: as buttons, in a menu, with keys, and in the palette. */
import { useRef } from "preact/hooks";
import { ask } from "../../../actions/action-dialog.js";
import { usePageActions } from "../../../actions/page-actions.js";
import { actionsFor, type Run, type RunAction } from "../../../actions/run-actions.js";
import { useShortcuts } from "../../../shell/keyboard.js";
import { may } from "../../../shell/me.js";
import { Button } from "../../../ui/button.js";
import { copyText } from "../../../ui/copy.js";
import { Menu, type MenuItem } from "../../../ui/menu.js";
import { showToast } from "../../../ui/toast.js";
import css from "./run-header.module.css";

interface Props {
  readonly run: Run;
  readonly lastEvent: number;
  /** Whether the page shows the run as it is now; the past cannot be changed. */
  readonly isPresent: boolean;
}

/** So many actions are buttons; the others are in the menu. */
const buttonCount = 2;

const copies = (run: Run) => [
  { label: "Copy as a command", icon: "terminal" as const, text: `pawl show ${run.id}`, what: "the command" },
  { label: "Copy as TypeScript", icon: "copy" as const, text: `pawl.run(${JSON.stringify(run.id)})`, what: "the code" },
];

/** Why the person cannot do it; null if they can. */
const refusalOf = ({ permission }: RunAction, isPresent: boolean): string | null => {
  if (!isPresent) return "You see the past; go back to the present first.";
  return may(permission) ? null : `Your access lacks “${permission}”.`;
};

export function RunActions({ run, lastEvent, isPresent }: Props) {
  const actions = actionsFor(run);
  const menu = useRef<HTMLSpanElement>(null);
  const open = (action: RunAction) => {
    const refusal = refusalOf(action, isPresent);
    if (refusal === null) ask({ action, run, lastEvent });
    else showToast(`${action.label}: ${refusal}`, "failed");
  };
  const copyLink = () => void copyText(window.location.href, "the link");
  const openMenu = () => menu.current?.querySelector<HTMLElement>("[aria-haspopup=menu]")?.click();
  const dependencies = [run.id, run.status, run.failedStep, lastEvent, isPresent];
  useShortcuts(
    [
      ...actions.map((action) => ({ keys: action.key, about: action.label, run: () => open(action) })),
      { keys: ".", about: "Show the actions of the run", run: openMenu },
      { keys: "y", about: "Copy the link to this page", run: copyLink },
    ],
    dependencies,
  );
  usePageActions(
    [
      ...actions.map((action) => ({ label: action.label, icon: action.icon, run: () => open(action) })),
      ...copies(run).map(({ label, icon, text, what }) => ({ label, icon, run: () => void copyText(text, what) })),
    ],
    dependencies,
  );
  const items: MenuItem[] = [
    ...actions.slice(buttonCount).map((action): MenuItem => {
      const refusal = refusalOf(action, isPresent);
      const { label, icon, key } = action;
      return { label, icon, run: () => open(action), isDisabled: refusal !== null, hint: refusal ?? key };
    }),
    ...copies(run).map(({ label, icon, text, what }) => ({ label, icon, run: () => void copyText(text, what) })),
    { label: "Copy the link", icon: "link", run: copyLink, hint: "y" },
  ];
  return (
    <div class={css.actions}>
      {actions.slice(0, buttonCount).map((action, index) => (
        <ActionButton
          key={action.id}
          action={action}
          isFirst={index === 0}
          refusal={refusalOf(action, isPresent)}
          open={open}
        />
      ))}
      <span ref={menu}>
        <Menu label="More actions" items={items} />
      </span>
    </div>
  );
}

function ActionButton({
  action,
  isFirst,
  refusal,
  open,
}: {
  readonly action: RunAction;
  readonly isFirst: boolean;
  readonly refusal: string | null;
  readonly open: (action: RunAction) => void;
}) {
  const { label, icon, key, id } = action;
  return (
    <Button
      kind={isFirst && (id === "resume" || id === "retry") ? "primary" : "plain"}
      icon={icon}
      disabled={refusal !== null}
      title={refusal ?? `${label} (${key})`}
      onClick={() => open(action)}
    >
      {label}
    </Button>
  );
}
