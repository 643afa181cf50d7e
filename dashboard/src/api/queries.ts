/**
 * Answers of the API, shared by all components that show them. An answer is read again when the live stream says that
 * something may have changed, as long as a component shows it.
 */
import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type ApiError, apiUrl, getJson, type Query } from "./api.js";

export interface QueryState<T> {
  /** The latest answer; undefined until there is one. */
  readonly data: T | undefined;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
}

/** Answers that no component shows are kept this long, so that going back is instant. */
const keepMs = 30_000;
const maxKept = 100;

class CachedQuery {
  readonly state: Signal<QueryState<unknown>> = signal({ data: undefined, error: null, isLoading: true });
  readonly #url: string;
  #subscribers = 0;
  #request: AbortController | null = null;
  #isStale = false;
  #askedAt = 0;
  #timer: number | undefined;
  /** When the last component that showed it went. A new query is about to be shown, so it is not old either. */
  releasedAt = Date.now();
  /** Live updates ask again no sooner than this after the last request. */
  minIntervalMs = 0;

  constructor(url: string) {
    this.#url = url;
  }

  get isShown(): boolean {
    return this.#subscribers > 0;
  }

  subscribe(): () => void {
    this.#subscribers += 1;
    void this.refresh();
    return () => {
      this.#subscribers -= 1;
      if (this.isShown) return;
      this.releasedAt = Date.now();
      window.clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#request?.abort();
      this.#request = null;
    };
  }

  /** Asks again now, or as soon as the interval of the query allows. */
  refreshWhenAllowed(): void {
    const waitMs = this.#askedAt + this.minIntervalMs - Date.now();
    if (waitMs <= 0) void this.refresh();
    else
      this.#timer ??= window.setTimeout(() => {
        this.#timer = undefined;
        if (this.isShown) void this.refresh();
      }, waitMs);
  }

  async refresh(): Promise<void> {
    // The answer on its way may be older than what has just changed, so it is asked again afterwards.
    if (this.#request !== null) {
      this.#isStale = true;
      return;
    }
    const request = new AbortController();
    this.#request = request;
    this.#isStale = false;
    this.#askedAt = Date.now();
    try {
      const data = await getJson<unknown>(this.#url, request.signal);
      if (this.#request === request) this.state.value = { data, error: null, isLoading: false };
    } catch (error) {
      if (this.#request !== request || request.signal.aborted) return;
      // What is shown stays: the shell says that the connection is lost.
      this.state.value = { data: this.state.peek().data, error: error as ApiError, isLoading: false };
    } finally {
      if (this.#request === request) this.#request = null;
      if (this.#isStale && this.isShown && this.#request === null) void this.refresh();
    }
  }
}

const cache = new Map<string, CachedQuery>();

function cachedQuery(url: string): CachedQuery {
  let query = cache.get(url);
  if (query === undefined) {
    dropUnused();
    query = new CachedQuery(url);
    cache.set(url, query);
  }
  return query;
}

function dropUnused(): void {
  const before = Date.now() - keepMs;
  const unused = [...cache].filter(([, query]) => !query.isShown);
  for (const [index, [url, query]] of unused.entries())
    if (query.releasedAt < before || unused.length - index > maxKept) cache.delete(url);
}

/**
 * Reads again everything that is shown.
 *
 * @param options.isUrgent at once, because the person has just changed something
 */
export function refreshShown(options: { readonly isUrgent?: boolean } = {}): void {
  for (const query of cache.values()) {
    if (!query.isShown) continue;
    if (options.isUrgent === true) void query.refresh();
    else query.refreshWhenAllowed();
  }
}

const nothing: QueryState<never> = { data: undefined, error: null, isLoading: false };

/**
 * The answer at a path of the API. While another path is being read for the first time, the answer of the path before is
 * shown, so that nothing flickers.
 *
 * @param path such as `v1/runs`; null reads nothing
 * @param options.minIntervalMs for large or slowly changing answers: live updates read them no more often than this
 */
export function useQuery<T>(
  path: string | null,
  query: Query = {},
  options: { keepPrevious?: boolean; minIntervalMs?: number } = {},
): QueryState<T> {
  const url = path === null ? null : apiUrl(path, query);
  const cached = useMemo(() => (url === null ? null : cachedQuery(url)), [url]);
  if (cached !== null) cached.minIntervalMs = options.minIntervalMs ?? 0;
  useEffect(() => cached?.subscribe(), [cached]);
  const previous = useRef<T | undefined>(undefined);
  if (cached === null) return nothing;
  const state = cached.state.value as QueryState<T>;
  if (state.data !== undefined) previous.current = state.data;
  if (state.data === undefined && state.error === null && options.keepPrevious === true)
    return { ...state, data: previous.current };
  return state;
}
