import { describe, expect, test } from "vitest";
import { type ListedRun, RunList } from "./run-list.js";

const run = (id: string, status = "waiting") => ({ id, status }) as ListedRun;
const answer = (ids: readonly string[], next: string | null = null, isCut = false) => ({
  runs: ids.map((id) => run(id)),
  next,
  isCut,
});
const idsOf = (list: RunList) => Array.from({ length: list.rowCount }, (_, index) => list.row(index)?.run.id);
const newList = (...pages: ReturnType<typeof answer>[]) => {
  const list = new RunList({ status: "waiting" }, { startedAt: 0, growsUntil: null });
  for (const [index, page] of pages.entries()) list.accept(index, page);
  return list;
};

describe("RunList", () => {
  test("pages follow each other by cursor", () => {
    const list = new RunList({ status: "waiting" }, { startedAt: 0, growsUntil: null });
    expect(list.queryOf(0)).toEqual({ status: "waiting", limit: 100, cursor: null });
    expect(list.queryOf(1)).toBe(null);
    list.accept(0, answer(["9", "8"], "after 8"));
    expect(list.queryOf(1)).toEqual({ status: "waiting", limit: 100, cursor: "after 8" });
    list.accept(1, answer(["7"]));
    expect(idsOf(list)).toEqual(["9", "8", "7"]);
    expect(list.queryOf(2)).toBe(null);
    expect(list.pagesIn(0, 1)).toEqual([0]);
    expect(list.pagesIn(1, 2)).toEqual([0, 1]);
  });

  test("a refreshed page updates rows in place", () => {
    const list = newList(answer(["9", "8"]));
    list.accept(0, { ...answer([]), runs: [run("9", "running"), run("8")] });
    expect(list.row(0)?.run.status).toBe("running");
    expect(list.goneCount).toBe(0);
  });

  test("a run that fits no more keeps its row, and comes back if it fits again", () => {
    const list = newList(answer(["9", "8", "7"], "after 7"), answer(["6"]));
    list.accept(0, answer(["9", "7", "6"]));
    expect(idsOf(list)).toEqual(["9", "8", "7", "6"]);
    expect(list.row(1)?.isGone).toBe(true);
    list.accept(0, answer(["9", "8", "7"], "after 7"));
    expect(list.goneCount).toBe(0);
  });

  test("a run that comes to fit is counted, and moves no row", () => {
    const list = newList(answer(["9", "7"], "after 7"), answer(["5"]));
    list.accept(0, answer(["9", "8"], "after 8"));
    expect(idsOf(list)).toEqual(["9", "7", "5"]);
    expect(list.appearedCount).toBe(1);
    // It was pushed off the page by the new one, so nothing is known of it.
    expect(list.row(1)?.isGone).toBe(false);
  });

  test("all rows are gone when an answer without a next page is empty", () => {
    const list = newList(answer(["9", "8"]));
    list.accept(0, answer([]));
    expect(list.goneCount).toBe(2);
  });

  test("a run that was on the page before is not listed twice", () => {
    const list = newList(answer(["9", "8"], "after 8"), answer(["8", "7"]));
    expect(idsOf(list)).toEqual(["9", "8", "7"]);
  });

  test("tells that the server stopped early", () => {
    const list = newList(answer(["9"], "after 5", true));
    expect(list.isCut).toBe(true);
    expect(list.next).toBe("after 5");
  });
});
