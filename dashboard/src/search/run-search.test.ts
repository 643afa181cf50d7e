import { describe, expect, test } from "vitest";
import { toApiQuery, toCommand, toTypeScript } from "./equivalents.js";
import { parseSearch, searchOf, withTerm } from "./run-search.js";
import { parseSpan } from "./span.js";
import { suggest } from "./suggestions.js";

const runId = "01a1ef8a-0c4b-7883-a8b6-80f2b190025f";
const filterOf = (text: string) => {
  const { filter, problems } = parseSearch(text);
  expect(problems).toEqual([]);
  return filter;
};
const problemOf = (text: string) => parseSearch(text).problems.join(" ");

describe("parseSearch", () => {
  test("an empty search matches everything", () => {
    expect(parseSearch("  ")).toEqual({ filter: {}, tokens: [], problems: [], runId: null });
  });

  test("reads every qualifier", () => {
    expect(filterOf('workflow:order status:Failed error:"was \\"declined\\"" step:charge tag:vip version:2')).toEqual({
      workflow: "order",
      status: "failed",
      error: 'was "declined"',
      step: "charge",
      tag: "vip",
      version: "2",
    });
    expect(filterOf(`hero:User/a/b key:cart-77 parent:${runId} fingerprint:8a45 active:false`)).toEqual({
      hero: { type: "User", id: "a/b" },
      key: "cart-77",
      parent: runId,
      fingerprint: "8a45",
      active: false,
    });
  });

  test("took: may be given twice, as a range", () => {
    expect(filterOf("took:>5m took:<1h")).toEqual({ tookAtLeast: "5m", tookAtMost: "1h" });
    expect(filterOf("took:>=1h30m")).toEqual({ tookAtLeast: "1h30m" });
  });

  test("times are dates or how long ago they were", () => {
    expect(filterOf("after:-24h before:2026-01-31T09:00:00Z")).toEqual({
      after: { kind: "ago", span: "24h" },
      before: { kind: "at", ms: Date.UTC(2026, 0, 31, 9) },
    });
  });

  test("values may contain colons, and names may be in capitals", () => {
    expect(filterOf("TAG:a:b key:x:y")).toEqual({ tag: "a:b", key: "x:y" });
  });

  test("the id of a run alone opens it", () => {
    expect(parseSearch(` ${runId.toUpperCase()} `).runId).toBe(runId);
    expect(parseSearch(`status:failed ${runId}`).runId).toBe(null);
  });

  test.each([
    ["declined", "“declined” is no id of a run. Say where to search for it, such as error:declined or tag:declined."],
    ["stat:failed", "There is no qualifier “stat:”. Did you mean “status:”?"],
    ["zzz:1", "There is no qualifier “zzz:”."],
    [
      "status:done",
      "There is no status “done”. There are running, waiting, pending, paused, failed, completed, canceled.",
    ],
    ["took:5m", "took: takes > or < and a duration, such as took:>5m or took:<1s."],
    ["took:>soon", "took: takes > or < and a duration, such as took:>5m or took:<1s."],
    ["tag:", "tag: needs a value, such as tag:vip."],
    ["hero:User", "hero: takes a type and an id, such as hero:User/42."],
    ["active:yes", "active: takes true (runs that have not ended) or false (runs that have)."],
    ["parent:7", "parent: takes the whole id of a run, or none for runs that are no children."],
    ["after:now", "after: takes a date (2026-01-31), a time (2026-01-31T09:00Z) or how long ago it was (-24h)."],
    ['error:"a b', "The quote after error: is not closed."],
    ["-status:failed", "“-status:failed” cannot be read: qualifiers cannot be negated."],
    ["tag:a tag:b", "tag: is there twice. A run has to fit one value."],
  ])("says in words what is wrong with %s", (text, problem) => {
    expect(problemOf(text)).toBe(problem);
  });
});

describe("withTerm", () => {
  test("replaces one word and keeps the others as they were typed", () => {
    const text = 'status:failed error:"a b" took:>5m';
    expect(withTerm(text, "status", "paused")).toBe('error:"a b" took:>5m status:paused');
    expect(withTerm(text, "status", null)).toBe('error:"a b" took:>5m');
  });

  test("what searchOf writes is read back", () => {
    const text = searchOf({ workflow: 'my "own" flow', step: "a\\b c" });
    expect(filterOf(text)).toEqual({ workflow: 'my "own" flow', step: "a\\b c" });
  });
});

describe("the same search elsewhere", () => {
  const now = Date.UTC(2026, 0, 31);
  const filter = filterOf(
    'workflow:order hero:User/42 error:"it\'s" after:-24h took:>5m parent:none key:k active:true',
  );

  test("as a question to the API", () => {
    expect(toApiQuery(filter, now)).toEqual({
      workflow: "order",
      heroType: "User",
      heroId: "42",
      error: "it's",
      createdAfter: now - 86_400_000,
      tookAtLeast: "5m",
      parentId: "none",
      idempotencyKey: "k",
      active: true,
    });
  });

  test("the API gets whole milliseconds, also if the clock of the database is half of one ahead", () => {
    expect(toApiQuery(filterOf("after:-1s"), 10_000.5)).toEqual({ createdAfter: 9_001 });
  });

  test("as a command", () => {
    expect(toCommand(filter)).toBe(
      "pawl runs --workflow order --hero User:42 --key k --error 'it'\\''s' --took-at-least 5m --created-after 24h --active --root",
    );
    expect(toCommand({})).toBe("pawl runs");
    expect(toCommand({ tag: "-x" })).toBe("pawl runs --tag=-x");
  });

  test("there is no command for what the command line cannot ask", () => {
    expect(toCommand({ parent: runId })).toBe(null);
    expect(toCommand({ active: false })).toBe(null);
  });

  test("as TypeScript", () => {
    expect(toTypeScript(filterOf("status:failed hero:User/42 after:-1h parent:none"))).toBe(
      'const { runs, next } = await pawl.runs({ status: "failed", hero: { type: "User", id: "42" }, parentId: null, createdAfter: new Date(Date.now() - 3_600_000) });',
    );
    expect(toTypeScript({})).toBe("const { runs, next } = await pawl.runs();");
  });
});

describe("suggest", () => {
  const textsFor = (text: string, caret = text.length) =>
    suggest(text, caret, ["order", "order refund"]).items.map((item) => item.text);

  test("names of qualifiers, without those that are there", () => {
    expect(textsFor("st")).toEqual(["status:", "step:"]);
    expect(textsFor("status:failed st")).toEqual(["step:"]);
    expect(textsFor("status:failed ")).toContain("workflow:");
    expect(textsFor("status:failed ")).not.toContain("status:");
  });

  test("values of workflows and statuses", () => {
    expect(textsFor("workflow:")).toEqual(["workflow:order", 'workflow:"order refund"']);
    expect(textsFor("workflow:ref")).toEqual(['workflow:"order refund"']);
    expect(textsFor("status:pa")).toEqual(["status:paused"]);
  });

  test("nothing for a value that is complete", () => {
    expect(textsFor("status:paused")).toEqual([]);
    expect(textsFor("tag:anything")).toEqual([]);
  });

  test("the word at the caret is the one that is replaced", () => {
    expect(suggest("status:pa tag:x", 9, [])).toMatchObject({ start: 0, end: 9, items: [{ text: "status:paused" }] });
  });
});

test.each([
  ["5m", 300_000],
  ["1h30m", 5_400_000],
  ["1.5s", 1_500],
  ["250ms", 250],
  ["7d", 604_800_000],
  ["", null],
  ["5", null],
  ["m", null],
  ["5 m", null],
])("parseSpan(%j) is %j", (text, ms) => {
  expect(parseSpan(text)).toBe(ms);
});
