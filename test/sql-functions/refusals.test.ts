/** Every refusal of `pawl_start`: with the code and the sentence of the client where the client refuses the same. */
import { connect, type Pawl, Workflow, workflow } from "pawl";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";
import { refusal, refusalOf, type SqlCaller, sqlCaller, sqlKinds } from "./sql-caller.js";

const order = workflow("order", { input: z.object({ sku: z.string() }) }, async (_ctx, { sku }) => sku);
const tagged = workflow("tagged", { tags: ["one"] }, async () => {});

class Onboarding extends Workflow<{ readonly id: string }> {
  static readonly heroType = "User";
  static readonly loadHero = async (id: string) => ({ id });
  static {
    this.step("wait", { wait: "1 hour" }, () => {});
  }
}

const long = "x".repeat(201);
const longMultibyte = "é".repeat(101);
const names = [
  "",
  " a",
  "a ",
  "\u00a0a",
  "a\u3000",
  "a\nb",
  "\u0080",
  "a\u007f",
  long,
  longMultibyte,
  "\u{1f600}".repeat(51),
];

/** Starts that the client refuses with the same sentence. */
const mistakes: readonly (readonly [what: string, workflow: string, options: object])[] = [
  ...names.map((name) => [`the workflow name ${JSON.stringify(name)}`, name, {}] as const),
  ["an unknown workflow", 'un"known\\', {}],
  ...names.map((idempotencyKey) => [`the key ${JSON.stringify(idempotencyKey)}`, "order", { idempotencyKey }] as const),
  ["a number as key", "order", { idempotencyKey: 42 }],
  ["a boolean as key", "order", { idempotencyKey: true }],
  ...names.map((tag) => [`the tag ${JSON.stringify(tag)}`, "order", { tags: ["ok", tag] }] as const),
  ["a number as tag", "order", { tags: [1] }],
  ["a text as tags", "order", { tags: "a" }],
  ["101 tags", "order", { tags: Array.from({ length: 101 }, (_, n) => `tag ${n}`) }],
  ["100 tags beside one of the workflow", "tagged", { tags: Array.from({ length: 100 }, (_, n) => `tag ${n}`) }],
  ...[1.5, 1_000_001, -1_000_001, 1e15, "high", true].map(
    (priority) => [`the priority ${JSON.stringify(priority)}`, "order", { priority }] as const,
  ),
  ["no hero for a class that needs one", "Onboarding", {}],
  ["null as hero", "Onboarding", { hero: null }],
  ["a text as hero", "Onboarding", { hero: "User 1" }],
  ["a number as hero", "order", { hero: 7 }],
  ["a hero without id", "Onboarding", { hero: { type: "User" } }],
  ["a hero without type", "order", { hero: { id: "1" } }],
  ["an empty object as hero", "order", { hero: {} }],
  ["a hero of another type", "Onboarding", { hero: { type: "Order", id: "1" } }],
  ["a hero of another case", "Onboarding", { hero: { type: "user", id: "1" } }],
  ...names.map((id) => [`the hero id ${JSON.stringify(id)}`, "order", { hero: { type: "User", id } }] as const),
  ["an empty hero type", "order", { hero: { type: "", id: "1" } }],
  ["delay and startAt", "order", { delay: 5, startAt: 5 }],
  ...names.map((by) => [`the user ${JSON.stringify(by)}`, "order", { by }] as const),
  ["a number as user", "order", { by: 5 }],
  ["a number as reason", "order", { reason: 5 }],
];

const milliseconds = "write a number of milliseconds, such as 60000 for a minute.";
const instant =
  'pass ISO 8601 text with a time zone, such as "2030-01-31T09:00:00Z", or a number of milliseconds since 1970.';
const options = "idempotencyKey, hero, allowMultiple, delay, startAt, priority, tags, by, reason";

/** Starts that have a sentence of their own, because SQL has no Date and no duration. Options are JSON text. */
const ownSentences: readonly (readonly [options: string, message: string])[] = [
  ['{"prio": 1}', `pawl_start has no option "prio"; its options are ${options}.`],
  ['{"Hero": {"type": "User", "id": "1"}}', `pawl_start has no option "Hero"; its options are ${options}.`],
  ['{"tx": 1}', `pawl_start has no option "tx"; its options are ${options}.`],
  ["[]", "pawl_start takes its options as an object, not a list."],
  ["null", "pawl_start takes its options as an object, not null."],
  ["5", "pawl_start takes its options as an object, not a number."],
  ['"a"', "pawl_start takes its options as an object, not a string."],
  ['{"idempotencyKey": ["a"]}', "The idempotency key array must be a string; choose another."],
  ['{"idempotencyKey": null}', "The idempotency key null must be a string; choose another."],
  ['{"allowMultiple": "yes"}', 'allowMultiple must be true or false, not "yes".'],
  ['{"allowMultiple": 1}', "allowMultiple must be true or false, not 1."],
  ['{"delay": "2 days"}', `The delay "2 days" is not a number; ${milliseconds}`],
  ['{"delay": null}', `The delay null is not a number; ${milliseconds}`],
  ['{"delay": -1}', `The delay -1 is negative; ${milliseconds}`],
  ['{"delay": 31557600000001}', `The delay 31557600000001 is longer than 1000 years; ${milliseconds}`],
  ...[
    '"tomorrow"',
    '"2030-01-31"',
    '"2030-01-31T09:00:00"',
    '"2030-02-30T09:00:00Z"',
    '"2030-01-31T25:00:00Z"',
    '"infinity"',
    '"now"',
    '""',
    "8640000000000001",
    "true",
    "null",
  ].map((startAt) => [`{"startAt": ${startAt}}`, `startAt is not a valid date but ${startAt}; ${instant}`] as const),
  [
    '{"hero": {"type": "User", "id": 42}}',
    'The hero\'s id is the number 42, but a hero\'s id must be a string; write { "type": "User", "id": "42" }.',
  ],
];

forEachStore((kind) => {
  let database: TestDatabase;
  let pawl: Pawl;
  let sql: SqlCaller;

  beforeAll(async () => {
    database = await testDatabase(kind);
    pawl = await connect(database.url, { logger: silent });
    await pawl.worker({ workflows: [order, tagged, Onboarding], lease: "1 minute" }).start();
  });
  afterAll(async () => {
    await pawl.close();
    await database.drop();
  });
  beforeEach(async () => {
    sql = await sqlCaller(kind, database.url);
  });

  /**
   * A sentence as the server says it. The functions are ASCII, so that a client with any character set can create them, and
   * count characters where JavaScript counts units of UTF-16. Messages of MariaDB have no emoji and no control characters.
   */
  const asServer = (text: string) => {
    const cut = text.replaceAll("…", "...").replace(/"(\u{1f600})+[.]*"/u, '"emoji"');
    if (kind === "postgres") return cut;
    const codeOf = (character: string) => character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return cut.replace(/[\u007f-\u009f]/g, (character) => `\\${codeOf(character)}`).replace(/"[?]+"/, '"emoji"');
  };

  describe("with the sentence of the client", () => {
    test.each(mistakes)("%s", async (_what, name, given) => {
      const byClient = await errorOf((async () => pawl.workflow<any>(name).trigger({ sku: "A-1" }, given))());
      const bySql = await refusalOf(sql.start(name, '{"sku":"A-1"}', given));
      expect(refusal(bySql.code as string, asServer(bySql.message))).toEqual(
        refusal(byClient.code, asServer(byClient.message)),
      );
      expect((await pawl.runs()).runs).toEqual([]);
    });

    test("a registration that cannot be read", async () => {
      await pawl.createWorkflow("damaged");
      for (const graph of ["{", "[]", "null", "5"]) {
        await sql.query(`UPDATE pawl_workflows SET graph = '${graph}' WHERE name = 'damaged'`);
        const { code, message } = await errorOf(pawl.workflow<any>("damaged").trigger(1));
        expect(await refusalOf(sql.start("damaged")), graph).toEqual(refusal(code, message));
      }
      await sql.query("DELETE FROM pawl_workflows WHERE name = 'damaged'");
    });
  });

  test.each(ownSentences)("the options %s are refused with a sentence of their own", async (given, message) => {
    expect(await refusalOf(sql.start("order", "1", given))).toEqual(refusal("INVALID_INPUT", message));
    expect((await pawl.runs()).runs).toEqual([]);
  });

  test("NULL as name is refused", async () => {
    expect(await refusalOf(sql.start(null))).toEqual(
      refusal("INVALID_INPUT", "The workflow name NULL must be a string; choose another."),
    );
  });

  if (kind === "mysql") {
    test("options that are not JSON are refused", async () => {
      expect(await refusalOf(sql.start("order", "1", "{"))).toEqual(
        refusal("INVALID_INPUT", "pawl_start takes its options as a JSON object, and this text is not JSON."),
      );
    });

    test("a long message is cut, and is still this error", async () => {
      const type = "\u{1f600}".repeat(50);
      const hero = { type, id: type };
      await pawl.createWorkflow(type);
      const id = await sql.start(type, "1", { hero });
      const { code, message } = await refusalOf(sql.start(type, "1", { hero }));
      expect(code).toBe("ALREADY_ACTIVE");
      expect(message).toMatch(/^\S{50} \S{50} already has an active run of workflow /u);
      await pawl.run(id).cancel();
    });
  } else {
    test("the detail of an error has its code and the run", async () => {
      const options = { hero: { type: "User", id: "1" }, idempotencyKey: "detail" };
      const runId = await sql.start("Onboarding", "null", options);
      const details = [];
      for (const [name, given] of [
        ["Onboarding", { hero: options.hero }],
        ["Onboarding", options],
        ["nothing", {}],
      ] as const)
        details.push(await errorOf(sql.start(name, "2", given)));
      expect(details.map((error) => [error.code, JSON.parse(error.detail)])).toEqual([
        ["PW409", { code: "ALREADY_ACTIVE", runId }],
        ["PW400", { code: "INVALID_INPUT", runId }],
        ["PW404", { code: "WORKFLOW_NOT_FOUND" }],
      ]);
      await pawl.run(runId).cancel();
    });
  }

  test("an input that the schema refuses is accepted, and the run fails where the code is", async () => {
    const run = pawl.run(await sql.start("order", '{"sku": 5}'));
    const error = await errorOf(run.result());
    expect(error).toMatchObject({ code: "RUN_FAILED" });
    expect(error.cause).toMatchObject({ name: "InvalidInputError" });
    expect(error.cause.message).toContain("sku");
    expect((await pawl.verify()).differences).toEqual([]);
  });
}, sqlKinds);
