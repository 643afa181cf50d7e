/**
 * Reads the pages of a list that are in view, and reads them again when something may have changed. A list with another
 * search, or with the runs that are new, replaces the present one only when its first page is there.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Answer, Query } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { toApiQuery } from "../../search/equivalents.js";
import type { RunFilter } from "../../search/run-search.js";
import { databaseNow } from "../../shell/me.js";
import type { VisibleRange } from "../../ui/virtual-rows.js";
import { pageSize, RunList } from "./run-list.js";

/**
 * Runs of the next seconds belong to the list as well: the clocks of browser and database may differ a little, and a run
 * that was just started must not be missing.
 */
const clockToleranceMs = 2_000;

function createList(filter: RunFilter): RunList {
  const now = databaseNow();
  const { createdBefore, ...query } = toApiQuery(filter, now);
  const present = Math.round(now + clockToleranceMs);
  const bound = createdBefore === undefined ? Number.POSITIVE_INFINITY : Number(createdBefore);
  return new RunList(
    // No payload is shown here; of errors, the server leaves the class and the beginning of the message.
    { ...query, createdBefore: Math.min(bound, present), explain: true, maxPayload: 0 },
    { startedAt: now, growsUntil: bound > present ? bound : null },
  );
}

/** The list that was left last, with its place, for the way back from a run. */
let leftList: { readonly key: string; readonly list: RunList; readonly scrollTop: number } | null = null;
const keepLeftMs = 600_000;

export interface RunListView {
  readonly list: RunList;
  /** Whether another list is being read, which will replace this one. */
  readonly isReplacing: boolean;
  /** How far the list was scrolled when it was left. */
  readonly scrollTop: number;
  /** Runs that fit the search and are not in the list, capped at the size of a page. */
  readonly newCount: number;
  readonly isNewCountCapped: boolean;
  readonly onRange: (range: VisibleRange) => void;
  /** Reads the page after the last one. */
  readonly readMore: () => void;
  /** Reads the list again from the top, with all runs that are new. */
  readonly showNew: () => void;
  /** Remembers the place, for the way back from a run. */
  readonly remember: (scrollTop: number) => void;
  /** Invisible components that read pages; they have to be rendered. */
  readonly readers: ComponentChildren;
}

export function useRunList(key: string, filter: RunFilter): RunListView {
  const left = useMemo(() => takeLeft(key), []);
  const [shown, setShown] = useState<{ readonly key: string; readonly list: RunList }>(
    () => left ?? { key, list: createList(filter) },
  );
  const [asked, setAsked] = useState(shown);
  const [pages, setPages] = useState<readonly number[]>([0]);
  const wanted = useRef({ first: 0, last: 0 });
  if (asked.key !== key) setAsked({ key, list: createList(filter) });
  void shown.list.version.value;
  void asked.list.version.value;
  const isReplacing = asked.list !== shown.list;
  useEffect(() => {
    if (!isReplacing || (asked.list.pageCount === 0 && asked.list.error === null)) return;
    setShown(asked);
    setPages([0]);
  }, [isReplacing, asked, asked.list.pageCount, asked.list.error]);

  const { list } = shown;
  const select = () => {
    const { first, last } = wanted.current;
    const visible = list.pagesIn(first, last);
    const isAtEnd = last >= list.rowCount - 1 && list.next !== null && !list.isCut;
    const next = list.pageCount === 0 ? [0] : [...visible, ...(isAtEnd ? [list.pageCount] : [])];
    setPages((before) => (before.join() === next.join() ? before : next));
  };
  useEffect(select, [list, list.pageCount]);
  const head = useNewest(list);
  return {
    list,
    isReplacing,
    scrollTop: left?.scrollTop ?? 0,
    newCount: head.count + list.appearedCount,
    isNewCountCapped: head.isCapped,
    onRange: (range) => {
      wanted.current = range;
      select();
    },
    readMore: () => setPages((before) => [...before, list.pageCount]),
    showNew: () => setAsked({ key, list: createList(filter) }),
    remember: (scrollTop) => {
      leftList = scrollTop > 0 ? { key, list, scrollTop } : null;
    },
    readers: (
      <>
        {pages.map((page) => (
          <PageReader key={`${list.key} ${page}`} list={list} page={page} />
        ))}
        {isReplacing ? <PageReader key={asked.list.key} list={asked.list} page={0} /> : null}
      </>
    ),
  };
}

function takeLeft(key: string) {
  const left = leftList;
  leftList = null;
  return left?.key === key && databaseNow() - left.list.startedAt < keepLeftMs ? left : null;
}

function PageReader({ list, page }: { readonly list: RunList; readonly page: number }) {
  // A page that the server cut examines 10,000 runs each time, which is too much for live updates.
  const isCut = list.page(page)?.isCut === true;
  const query = useMemo(() => list.queryOf(page), [list, page]);
  const { data, error } = useQuery<Answer<"listRuns">>(query === null || isCut ? null : "v1/runs", query ?? {});
  useEffect(() => {
    if (data !== undefined) list.accept(page, data);
  }, [data]);
  useEffect(() => {
    if (error !== null) list.fail(error);
  }, [error]);
  return null;
}

/** Counts the runs that were created after the list was read. */
function useNewest(list: RunList): { readonly count: number; readonly isCapped: boolean } {
  const query = useMemo(() => newestQuery(list), [list]);
  const isAsked = list.growsUntil !== null && list.pageCount > 0 && list.page(0)?.isCut === false;
  const { data } = useQuery<Answer<"listRuns">>(isAsked ? "v1/runs" : null, query);
  const since = Number(list.query.createdBefore);
  const until = list.growsUntil ?? since;
  const isNew = (at: number) => at >= since && at < until;
  const count = data?.runs.filter(({ createdAt }) => isNew(Date.parse(createdAt))).length ?? 0;
  return { count, isCapped: count >= pageSize };
}

function newestQuery({ query }: RunList): Query {
  const { createdBefore, explain: _explain, createdAfter: _after, ...rest } = query;
  // Lists of open runs are ordered by id, and no index bounds their time: with a bound, the server would examine 10,000
  // of them to find that none is new. Their newest page is cheaper.
  const isOpenList = query.active === true || ["pending", "running", "waiting"].includes(String(query.status));
  return { ...rest, limit: pageSize, ...(isOpenList ? {} : { createdAfter: createdBefore }) };
}
