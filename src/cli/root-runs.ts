/** A page of the runs that no other run has started: without children, and without the nodes of graphs. */
import type { RunsFilter } from "../client/client.js";
import type { RunInfo } from "../client/info.js";
import type { Pawl } from "../connect.js";

type Lister = Pick<Pawl, "runs">;
type Page = Awaited<ReturnType<Pawl["runs"]>>;

/** A graph of a thousand nodes is one run among a thousand: what is passed over is read in large pages. */
const largePage = 1_000;

export async function rootRuns(pawl: Lister, filter: RunsFilter & { readonly limit: number }): Promise<Page> {
  const { limit } = filter;
  const roots: RunInfo[] = [];
  /** Where the last one that is shown was found; known before it is known whether there are more. */
  let lastAt: { readonly from: RunsFilter; readonly place: number } | null = null;
  let from: RunsFilter = filter;
  for (let size = limit; ; size = largePage) {
    const page = await pawl.runs({ ...from, limit: size });
    for (const [index, run] of page.runs.entries()) {
      if (run.parentId !== null) continue;
      if (roots.length === limit) return { runs: roots, next: await cursorAfter(pawl, lastAt) };
      roots.push(run);
      lastAt = { from, place: index + 1 };
    }
    if (page.next === null) return { runs: roots, next: null };
    from = { ...filter, cursor: page.next };
  }
}

/** Cursors are given out only for ends of pages: one that ends there is asked for. */
async function cursorAfter(pawl: Lister, at: { readonly from: RunsFilter; readonly place: number } | null) {
  return at === null ? null : (await pawl.runs({ ...at.from, limit: at.place })).next;
}
