/** What can be done with a limit: as buttons, in a menu, with keys, in the palette, and as an address (`?do=override`). */
import { useRef } from "preact/hooks";
import { usePageActions } from "../../../actions/page-actions.js";
import { location, setSearch } from "../../../router/router.js";
import { useShortcuts } from "../../../shell/keyboard.js";
import { may, me } from "../../../shell/me.js";
import { Button } from "../../../ui/button.js";
import { copyText } from "../../../ui/copy.js";
import { Menu, type MenuItem } from "../../../ui/menu.js";
import { showEquivalent } from "../equivalents.js";
import type { Limit } from "../limit.js";
import css from "../limit.module.css";
import { ClearDialog } from "./clear-dialog.js";
import { OverrideDialog } from "./override-dialog.js";

export function LimitActions({ limit }: { readonly limit: Limit }) {
  const { name } = limit;
  const menu = useRef<HTMLSpanElement>(null);
  const isAllowed = may("limits");
  const isOverridden = limit.override !== null;
  const open = (id: string) => setSearch({ do: id });
  const close = () => setSearch({ do: null }, { replace: true });
  const { cli, typescript } = showEquivalent(name);
  const overrideLabel = isOverridden ? "Change the override" : "Override";
  const copyLink = () => void copyText(window.location.href, "the link");
  const copies = [
    { label: "Copy as a command", icon: "terminal", run: () => void copyText(cli, "the command") },
    { label: "Copy as TypeScript", icon: "copy", run: () => void copyText(typescript, "the code") },
    { label: "Copy the link", icon: "link", run: copyLink, hint: "y" },
  ] as const satisfies readonly MenuItem[];
  const override = { label: overrideLabel, icon: "limits", run: () => open("override") } as const;
  const clear = { label: "Clear the override", icon: "retry", run: () => open("clear") } as const;
  const possible = isAllowed ? [override, ...(isOverridden ? [clear] : [])] : [];
  const dependencies = [name, isOverridden, isAllowed];
  useShortcuts(
    [
      ...(isAllowed ? [{ keys: "o", about: `${overrideLabel}, of this limit`, run: override.run }] : []),
      ...(isAllowed && isOverridden ? [{ keys: "c", about: "Clear the override of this limit", run: clear.run }] : []),
      {
        keys: ".",
        about: "Show the actions of the limit",
        run: () => menu.current?.querySelector<HTMLElement>("[aria-haspopup=menu]")?.click(),
      },
      { keys: "y", about: "Copy the link to this page", run: copyLink },
    ],
    dependencies,
  );
  usePageActions(
    [
      ...possible.map(({ label, icon, run }) => ({ label: `${label}: ${name}`, icon, run })),
      ...copies.map(({ label, icon, run }) => ({ label, icon, run })),
    ],
    dependencies,
  );
  const asked = location.value.search.get("do");
  return (
    <div class={css.actions}>
      {isAllowed && isOverridden ? (
        <Button kind="primary" icon="retry" title="Clear the override (c)" onClick={clear.run}>
          Clear the override
        </Button>
      ) : null}
      <Button
        icon="limits"
        disabled={!isAllowed}
        title={isAllowed ? `${overrideLabel} (o)` : "Your access lacks “limits”."}
        onClick={override.run}
      >
        {overrideLabel}
      </Button>
      <span ref={menu}>
        <Menu label="More actions" items={copies} />
      </span>
      {me.value === null ? null : asked === "override" ? (
        <OverrideDialog limit={limit} onClose={close} />
      ) : asked === "clear" ? (
        <ClearDialog limit={limit} onClose={close} />
      ) : null}
    </div>
  );
}
