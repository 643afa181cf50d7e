/**
 * Addresses: the path and the search of the page are its state, so every view can be linked, reloaded and left with the
 * back button.
 */
import { computed, signal } from "@preact/signals";

export interface Location {
  /** The path below the base path, beginning with a slash: `/runs/01a…`. */
  readonly path: string;
  readonly search: URLSearchParams;
}

const read = (): Location => {
  const base = new URL(document.baseURI).pathname.replace(/\/$/, "");
  const { pathname, search } = window.location;
  const path = pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
  return { path: path === "" ? "/" : path, search: new URLSearchParams(search) };
};

export const location = signal<Location>(read());
export const path = computed(() => location.value.path);

window.addEventListener("popstate", () => {
  location.value = read();
});

/** The address of a path below the base path, for links. */
export const href = (to: string): string => new URL(to.replace(/^\//, ""), document.baseURI).href;

export function navigate(to: string, options: { readonly replace?: boolean } = {}): void {
  const url = href(to);
  if (url === window.location.href) return;
  if (options.replace === true) window.history.replaceState(null, "", url);
  else window.history.pushState(null, "", url);
  const before = location.peek().path;
  location.value = read();
  if (location.peek().path !== before) document.querySelector("main")?.scrollTo(0, 0);
}

/** Changes parameters of the search, and keeps the others; null removes one. */
export function setSearch(
  changes: Readonly<Record<string, string | null>>,
  options: { readonly replace?: boolean } = {},
): void {
  const search = new URLSearchParams(location.peek().search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") search.delete(name);
    else search.set(name, value);
  }
  const text = search.toString();
  navigate(`${location.peek().path}${text === "" ? "" : `?${text}`}`, options);
}

/** Clicks on links of the dashboard change the address without loading the page again. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = (event.target as Element | null)?.closest("a");
  if (link?.target !== "" || link.hasAttribute("download")) return;
  const base = new URL(document.baseURI);
  const url = new URL(link.href);
  if (url.origin !== base.origin || !url.pathname.startsWith(base.pathname) || url.pathname.includes("/api/")) return;
  event.preventDefault();
  navigate(url.pathname.slice(base.pathname.length - 1) + url.search);
}

/** Matches a path with a pattern such as `/runs/:run`; null if it does not fit. */
export function matchPath(pattern: string, actual: string): Readonly<Record<string, string>> | null {
  const parts = pattern.split("/");
  const segments = actual.replace(/(.)\/$/, "$1").split("/");
  if (parts.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const segment = segments[index] as string;
    if (part.startsWith(":")) {
      if (segment === "") return null;
      try {
        params[part.slice(1)] = decodeURIComponent(segment);
      } catch {
        return null;
      }
    } else if (part !== segment) return null;
  }
  return params;
}

export const runHref = (runId: string, search: Readonly<Record<string, string>> = {}): string => {
  const text = new URLSearchParams(search).toString();
  return href(`/runs/${encodeURIComponent(runId)}${text === "" ? "" : `?${text}`}`);
};
