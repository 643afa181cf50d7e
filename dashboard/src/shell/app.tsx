/** The frame of every screen: navigation, the bar above, notes about the connection, dialogs and shortcuts. */
import { useEffect } from "preact/hooks";
import { ActionDialog } from "../actions/action-dialog.js";
import { connection } from "../api/connection.js";
import { followLinks, href, matchPath, navigate, path } from "../router/router.js";
import { screens } from "../screens/screens.js";
import { Button } from "../ui/button.js";
import { Icon } from "../ui/icon.js";
import { Empty } from "../ui/page.js";
import { Toasts } from "../ui/toast.js";
import css from "./app.module.css";
import { handleKey, type Shortcut, useShortcuts } from "./keyboard.js";
import { isHelpOpen, KeyboardHelp } from "./keyboard-help.js";
import { loadMe } from "./me.js";
import { isPaletteOpen, Palette } from "./palette.js";
import { pageSettings } from "./settings.js";
import { TopBar } from "./top-bar.js";

const navShortcuts: readonly Shortcut[] = [
  ...screens.flatMap(({ path: to, nav }) =>
    nav === undefined ? [] : [{ keys: `g ${nav.key}`, about: `Go to ${nav.label}`, run: () => navigate(to) }],
  ),
  { keys: "?", about: "Show the shortcuts", run: () => void (isHelpOpen.value = true) },
];

/** The label of the environment has a colour that warns, unless the server chose one. */
const labelColor = (): string => {
  if (pageSettings.color !== undefined) return pageSettings.color;
  if (/prod/i.test(pageSettings.label ?? "")) return "red";
  return /stag|test/i.test(pageSettings.label ?? "") ? "amber" : "blue";
};

export function App() {
  useEffect(() => {
    void loadMe().catch(() => {});
    const openPalette = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        isPaletteOpen.value = true;
      }
    };
    window.addEventListener("keydown", openPalette);
    window.addEventListener("keydown", handleKey);
    document.addEventListener("click", followLinks);
  }, []);
  useShortcuts(navShortcuts, []);
  return (
    <div class={css.frame} {...(pageSettings.label === undefined ? {} : { "data-color": labelColor() })}>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place on this page, as screen readers expect of a skip link */}
      <a class={css.skip} href="#content" onClick={skipToContent}>
        Skip to the content
      </a>
      <Navigation />
      <div class={css.column}>
        <TopBar />
        <ConnectionNote />
        <main id="content" class={css.content} tabIndex={-1}>
          <CurrentScreen />
        </main>
      </div>
      {isPaletteOpen.value ? <Palette /> : null}
      {isHelpOpen.value ? <KeyboardHelp /> : null}
      <ActionDialog />
      <Toasts />
    </div>
  );
}

/** A fragment alone would lead to the start page, because it is relative to the base of the page. */
function skipToContent(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function CurrentScreen() {
  for (const screen of screens) {
    const params = matchPath(screen.path, path.value);
    if (params !== null) return <screen.component key={screen.path} params={params} />;
  }
  return (
    <>
      <h1 class="unseen">There is no such page</h1>
      <Empty title="There is no such page" icon="search">
        <a href={href("/")}>Go to the start page</a>
      </Empty>
    </>
  );
}

function Navigation() {
  const isCurrent = (to: string) => (to === "/" ? path.value === "/" : `${path.value}/`.startsWith(`${to}/`));
  return (
    <nav class={css.nav} aria-label="Screens">
      <a class={css.brand} href={href("/")} aria-label={`${pageSettings.title ?? "Pawl"}: start page`}>
        <span class={css.mark}>
          <svg viewBox="0 0 32 32" width="18" height="18" aria-hidden="true">
            <path
              d="M9 25V9.5h8.2a5.2 5.2 0 0 1 0 10.4H12.6"
              fill="none"
              stroke="currentColor"
              stroke-width="3.4"
              stroke-linecap="round"
              stroke-linejoin="round"
            />
            <circle cx="23" cy="24" r="2.4" fill="currentColor" />
          </svg>
        </span>
        <span>{pageSettings.title ?? "Pawl"}</span>
      </a>
      <ul>
        {screens.map(({ path: to, nav }) =>
          nav === undefined ? null : (
            <li key={to}>
              <a
                class={css.navLink}
                href={href(to)}
                title={`${nav.label} (g ${nav.key})`}
                {...(isCurrent(to) ? { "aria-current": "page" as const } : {})}
              >
                <Icon name={nav.icon} />
                <span>{nav.label}</span>
              </a>
            </li>
          ),
        )}
      </ul>
    </nav>
  );
}

/** What stands above every screen when the server does not answer or does not know this browser any more. */
function ConnectionNote() {
  if (connection.value === "ok") return null;
  const isSignedOut = connection.value === "signed-out";
  return (
    <div
      class={`${css.connection} ${isSignedOut ? css.signedOut : css.lost}`}
      role="alert"
      data-state={connection.value}
    >
      <Icon name="errors" size={14} />
      <span>
        {isSignedOut
          ? "Your login has expired, so nothing here is up to date. Load the page again to sign in."
          : "The connection to the server is lost. You see what was known last; the page tries again every few seconds."}
      </span>
      <Button onClick={() => window.location.reload()}>Load again</Button>
    </div>
  );
}
