/** `runs`, `show`, `history`: reading runs as text and as JSON. */
import { connect, workflow } from "pawl";
import { afterAll, beforeAll, expect, test } from "vitest";
import { errorIn, newFolder } from "./command-line.js";
import { folderWithSampleRuns, type SampleRuns, silent } from "./sample-runs.js";

let samples: SampleRuns;
beforeAll(async () => {
  samples = await folderWithSampleRuns();
});
afterAll(() => samples.folder.remove());

const runs = async (...args: string[]): Promise<string[]> =>
  (await samples.folder.json("runs", ...args)).runs.map(({ id }: { id: string }) => id);

test("runs lists runs newest first, with whole ids, in 80 columns by default", async () => {
  const lines = (await samples.folder.text("runs")).trimEnd().split("\n");
  const { ids } = samples;
  expect(lines[0]).toMatch(/^id +workflow +status +created +took$/);
  expect(lines.slice(1).map((line) => line.slice(0, 36))).toEqual([
    ids.later,
    ids.flaky,
    ids.onboarding,
    ids.held,
    ids.declined,
    ids.echo,
    ids.order,
  ]);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  expect(lines.find((line) => line.startsWith(ids.declined))).toMatch(/ {2}declined +failed +(now|.* ago) +\d+ms/);
});

test("runs --json has the fields of the API, dates in ISO format, and the nearest JSON for values that JSON lacks", async () => {
  const { runs: found, next } = await samples.folder.json("runs", "--workflow", "echo", "--status", "completed");
  expect(next).toBeNull();
  expect(found).toEqual([
    expect.objectContaining({
      id: samples.ids.echo,
      workflow: "echo",
      status: "completed",
      hero: null,
      input: { when: "1970-01-01T00:00:00.000Z", big: "12", map: [["a", 1]] },
      output: { when: "1970-01-01T00:00:00.000Z", big: "12", map: [["a", 1]] },
      error: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    }),
  ]);
});

test("runs filters by workflow, status, activity, hero, idempotency key, tag and time", async () => {
  const { ids } = samples;
  expect(await runs("--workflow", "order")).toEqual([ids.order]);
  expect(await runs("--status", "failed")).toEqual([ids.declined]);
  expect(await runs("--step", "charge", "--status", "failed")).toEqual([ids.declined]);
  expect(await runs("--error", "card was declined")).toEqual([ids.declined]);
  expect(await runs("--took-at-least", "100 days")).toEqual([]);
  expect(await runs("--active")).toEqual([ids.later, ids.onboarding, ids.held, ids.order]);
  expect(await runs("--hero", "User:42")).toEqual([ids.onboarding]);
  expect(await runs("--key", "cart-77")).toEqual([ids.order]);
  expect(await runs("--key", "cart-78")).toEqual([]);
  expect(await runs("--tag", "vip")).toEqual([ids.order]);
  expect(await runs("--created-after", "1h")).toHaveLength(7);
  expect(await runs("--created-before", "1h")).toEqual([]);
  expect(await runs("--created-after", "2100-01-01")).toEqual([]);
  expect(await samples.folder.text("runs", "--tag", "nobody")).toBe("No runs.\n");
});

test("runs lists further pages", async () => {
  const text = await samples.folder.text("runs", "--limit", "4");
  const [, cursor] = /^There are more: --cursor (\S+)$/m.exec(text) ?? [];
  const second = await samples.folder.json("runs", "--limit", "4", "--cursor", cursor as string);
  expect(second.runs.map(({ id }: { id: string }) => id)).toEqual([
    samples.ids.declined,
    samples.ids.echo,
    samples.ids.order,
  ]);
  expect(second.next).toBeNull();
});

test("runs shows versions when a run has one", async () => {
  const folder = newFolder();
  const pawl = await connect(folder.url, { logger: silent });
  const plain = await pawl.start(
    workflow("plain", async () => 1),
    undefined,
  );
  expect(await folder.text("runs")).toMatch(/^id +workflow +status +created/);
  const blue = await pawl.start(
    workflow("purchase", { version: "blue" }, async () => 1),
    undefined,
  );
  await pawl.close();
  const text = await folder.text("runs");
  expect(text).toMatch(/^id +workflow +version +status +created/);
  expect(text).toMatch(new RegExp(`^${blue.id} +purchase +blue +pending`, "m"));
  expect(text).toMatch(new RegExp(`^${plain.id} +plain +pending`, "m"));
});

test("runs --root leaves out child runs, page by page", async () => {
  const folder = newFolder();
  const pawl = await connect(folder.url, { logger: silent });
  const part = workflow("part", async () => 1);
  const whole = workflow("whole", async (ctx, n: number) => ctx.map(part, Array(n).fill(0)));
  await pawl.worker({ workflows: [part, whole] }).start();
  const roots: string[] = [];
  for (const n of [3, 0, 7, 1, 2]) {
    const run = await pawl.start(whole, n);
    await run.result();
    roots.unshift(run.id);
  }
  await pawl.close();
  expect((await folder.json("runs")).runs).toHaveLength(18);
  const { runs: all, next } = await folder.json("runs", "--root");
  expect([all.map(({ id }: { id: string }) => id), next]).toEqual([roots, null]);
  expect(all.every(({ parentId }: { parentId: string | null }) => parentId === null)).toBe(true);
  expect((await folder.json("runs", "--root", "--workflow", "part")).runs).toEqual([]);

  const pages: string[][] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: any = await folder.json(
      "runs",
      "--root",
      "--limit",
      "2",
      ...(cursor === "" ? [] : ["--cursor", cursor]),
    );
    pages.push(page.runs.map(({ id }: { id: string }) => id));
    cursor = page.next;
  }
  expect(pages).toEqual([roots.slice(0, 2), roots.slice(2, 4), roots.slice(4)]);
  expect(await folder.error("runs", "--root", "--limit", "0")).toContain("between 1 and 1000");
});

test.each([
  [["--hero", "User"], '--hero takes a type and an id, as in User:42, not "User".'],
  [
    ["--created-after", "yesterday"],
    '--created-after takes a date (2025-11-16) or how long ago ("2h"), not "yesterday".',
  ],
  [
    ["--created-before", "2025-99-99"],
    '--created-before takes a date (2025-11-16) or how long ago ("2h"), not "2025-99-99".',
  ],
  [["--limit", "0"], "runs({ limit }) must be between 1 and 1000, not 0."],
  [["--cursor", "nonsense"], "runs({ cursor }) must be the `next` of another page."],
])("runs refuses %j", async (args, sentence) => {
  expect(await samples.folder.error("runs", ...args)).toBe(sentence);
});

test("show prints the header and steps of a waiting run, and what it waits for since when", async () => {
  const { order } = samples.ids;
  const text = await samples.folder.text("show", order);
  expect(text).toMatch(/^order {2}waiting\n/);
  for (const fact of [
    `run       ${order}`,
    "tags      big, vip",
    "key       cart-77",
    "priority  5",
    'input     {"sku":"A-1"}',
  ])
    expect(text).toContain(`\n  ${fact}\n`);
  expect(text).toMatch(/^steps\n {2}reserve +completed +\d+ms +█+$/m);
  expect(text).toMatch(
    /^It waits for the signal "approved", since .* \(.*\), until .* \(in 7 days\) at the latest\.$/m,
  );
  expect(text).not.toContain("last error");
});

test("errors lists the errors of failed and paused runs, and runs finds their runs", async () => {
  const { folder, ids } = samples;
  const { errors } = await folder.json("errors");
  const declined = errors.find(({ workflow }: { workflow: string }) => workflow === "declined");
  expect(declined).toMatchObject({ status: "failed", step: "charge", count: 1, latestRunId: ids.declined });
  const { runs } = await folder.json("runs", "--fingerprint", declined.fingerprint);
  expect(runs.map(({ id }: { id: string }) => id)).toEqual([ids.declined]);
  expect(await folder.text("errors")).toMatch(/declined +charge +failed +1 +.*PermanentError: the c/);
});

test("show prints the error of a failed run", async () => {
  const text = await samples.folder.text("show", samples.ids.declined);
  expect(text).toMatch(/^declined {2}failed\n/);
  expect(text).toMatch(/^ {2}charge +failed .*█.* the card was declined$/m);
  expect(text).toMatch(/^last error {2}PermanentError: the card was declined$/m);
});

test("show prints the reason of a paused run, and the next step of a class run", async () => {
  expect(await samples.folder.text("show", samples.ids.held)).toMatch(
    /^It has been paused at step "ask" since .* until an operator resumes it: somebody has to look$/m,
  );
  const onboarding = await samples.folder.text("show", samples.ids.onboarding);
  expect(onboarding).toContain("  hero      User 42\n");
  expect(onboarding).toMatch(/^ {2}welcome +completed +\d+ms {2}█/m);
  expect(onboarding).toMatch(/^ {2}say "hi" +scheduled +in 2 days +░$/m);
});

test("show --mermaid draws the steps of a run and the state of each", async () => {
  expect(await samples.folder.text("show", samples.ids.onboarding, "--mermaid")).toMatch(
    /^flowchart TD\n {2}n1\["welcome"\]:::completed\n {2}n2\["say #34;hi#34;"\]:::scheduled\n {2}n1 --> n2\n {2}classDef completed /,
  );
});

test("show numbers the attempts, and prints no last error after a later success", async () => {
  const text = await samples.folder.text("show", samples.ids.flaky);
  expect(text).toMatch(/^ {2}call +failed +.*the line is busy$/m);
  expect(text).toMatch(/^ {2}call +#2 +completed /m);
  expect(text).toMatch(/^ {2}output {4}2$/m);
  expect(text).not.toContain("last error");
});

test("show --json contains the run, its executions, its progress and its explanation", async () => {
  const shown = await samples.folder.json("show", samples.ids.declined);
  expect(shown).toMatchObject({
    id: samples.ids.declined,
    status: "failed",
    input: null,
    error: { name: "PermanentError", message: "the card was declined", code: "PERMANENT_ERROR" },
    executions: [{ step: "charge", attempt: 1, state: "failed", outcome: "failed_by_exception" }],
    progress: [],
    why: { because: "ended" },
  });
});

test("a run may be given by the beginning of its id, if no other id begins with it", async () => {
  const { folder, ids } = samples;
  const others = Object.values(ids).filter((id) => id !== ids.declined);
  let length = 6;
  while (others.some((id) => id.startsWith(ids.declined.slice(0, length)))) length += 1;
  expect((await folder.json("show", ids.declined.slice(0, length).toUpperCase())).id).toBe(ids.declined);
  const ambiguous = ids.declined.slice(0, 6);
  expect(await folder.error("show", ambiguous)).toMatch(
    new RegExp(`^Several runs begin or end with "${ambiguous}": .*, .* The last 8 characters tell them apart\\.$`),
  );
});

test("a run may be given by the end of its id, which is unique even among runs of the same minute", async () => {
  const { folder, ids } = samples;
  for (const id of Object.values(ids)) expect((await folder.json("show", id.slice(-8))).id).toBe(id);
});

test.each([
  [
    "0198",
    '"0198" is too short for a run; give at least 6 characters of its id. By its idempotency key: `pawl runs --key 0198`.',
  ],
  [
    "my-run",
    '"my-run" is not the id of a run; `pawl runs` shows them, `pawl runs --key my-run` those with this idempotency key.',
  ],
  ["0000000", 'No run begins or ends with "0000000"; give its full id, `pawl runs` shows it.'],
  [
    "01980000-0000-7000-8000-000000000000",
    "Run 01980000-0000-7000-8000-000000000000 does not exist; it may have been pruned.",
  ],
])("show %s finds nothing, and the error says what to do", async (id, sentence) => {
  const { folder } = samples;
  const [show, history] = await Promise.all([folder.pawl("show", id), folder.pawl("history", id)]);
  expect([errorIn(show), errorIn(history)]).toEqual([sentence, sentence]);
});

test("history lists the events of a run", async () => {
  const lines = (await samples.folder.text("history", samples.ids.order)).trimEnd().split("\n");
  expect(lines[0]).toMatch(/^# +at +event +of +data$/);
  expect(lines.slice(1).map((line) => line.split(/ {2,}/)[2])).toEqual([
    "run.started",
    "step.completed",
    "wait.started",
  ]);
  expect(lines[2]).toMatch(/^2 +\d\d:\d\d:\d\d +step\.completed +reserve +\{.*shelf of A-1/);
});

test("history --json has the API's fields, and pages", async () => {
  const { folder, ids } = samples;
  const events = await folder.json("history", ids.declined);
  expect(events.map(({ seq, type }: { seq: number; type: string }) => [seq, type])).toEqual([
    [1, "run.started"],
    [2, "step.failed"],
    [3, "run.failed"],
  ]);
  expect(events[1]).toMatchObject({ node: "charge", attempt: 1, at: expect.stringMatching(/Z$/), data: { error: {} } });
  const page = await folder.json("history", ids.declined, "--after", "1", "--limit", "1");
  expect(page).toEqual([events[1]]);
  expect(await folder.text("history", ids.declined, "--after", "3")).toBe("No events.\n");
  expect(await folder.error("history", ids.declined, "--limit", "2000")).toContain("between 1 and 1000");
});
