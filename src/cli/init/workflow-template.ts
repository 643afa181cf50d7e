/** Renders the first workflow of an application: about a row of one of its tables or, without tables, without a hero. */
import type { DatabaseKind } from "../migration-sql.js";
import { printable } from "../table.js";
import type { KeyType, TypedKey } from "./key-types.js";
import { typeNameOf } from "./names.js";

export interface HeroTable extends TypedKey {
  readonly database: DatabaseKind;
  /** PostgreSQL: the schema, if it is not the default one. */
  readonly schema: string | undefined;
}

export interface FirstWorkflow {
  readonly text: string;
  /** The command that starts a run of it. */
  readonly startCommand: string;
}

export function renderFirstWorkflow(table: HeroTable | null, isTypeScript: boolean): FirstWorkflow {
  return table === null ? renderHelloWorkflow(isTypeScript) : renderRowWorkflow(table, isTypeScript);
}

function renderHelloWorkflow(isTypeScript: boolean): FirstWorkflow {
  const startCommand = `npx pawl start hello '{"name": "Ada"}' --wait`;
  return {
    startCommand,
    text: `/**
 * A first workflow, to be changed as you like.
 *
 *   npx pawl worker    executes it
 *   ${startCommand}
 */
import { workflow } from "pawl";

export const hello = workflow("hello", async (ctx, { name }${isTypeScript ? ": { name: string }" : ""}) => {
  const greeting = await ctx.step("greet", () => \`Hello, \${name}\`);
  await ctx.sleep("pause", "1 second"); // or "2 days": a sleeping run uses no memory
  return greeting;
});

// A schedule starts it by itself: import { schedule } from "pawl", and export one.
// export const daily = schedule("daily_hello", { workflow: hello, input: { name: "Ada" }, cron: "0 9 * * MON-FRI" });
`,
  };
}

/** How the id of a hero, which is text, becomes the key of a row. */
const conversions: Readonly<
  Record<KeyType, { readonly type: string; readonly convert: string; readonly example: string }>
> = {
  bigint: { type: "bigint", convert: "({ id: BigInt(id) })", example: "42" },
  integer: { type: "number", convert: "({ id: Number(id) })", example: "42" },
  uuid: { type: "string", convert: "({ id })", example: "0198c2f4-6d3e-7b1a-9c55-3f2a1b0c9d8e" },
  text: { type: "string", convert: "({ id })", example: "some-id" },
};

function renderRowWorkflow(table: HeroTable, isTypeScript: boolean): FirstWorkflow {
  const hero = typeNameOf(table.table);
  const tableText = escapeForComment(table.table);
  const name = `${hero}FollowUp`;
  const { type, convert, example } = conversions[table.key];
  const startCommand = `npx pawl start ${name} --hero ${hero}:${example}`;
  const types = isTypeScript
    ? `
/** What a run is about. Ids are text for Pawl; in ${tableText} they are ${escapeForComment(table.type)}. Add the fields that your steps need. */
interface ${hero} {
  readonly id: ${type};
}
`
    : "";
  return {
    startCommand,
    text: `/**
 * A first workflow, about one row of ${tableText}, to be changed as you like.
 *
 *   npx pawl worker    executes it
 *   ${startCommand}
 */
import { Workflow } from "pawl";
${types}
export class ${name} extends Workflow${isTypeScript ? `<${hero}>` : ""} {
  static ${isTypeScript ? "readonly " : ""}heroType = "${hero}";
  /** Called before each step: read the row here, with the library that your application uses. */
  static loadHero = (id${isTypeScript ? `: string): ${hero}` : ")"} => ${convert};

  static {
    this.step("check_row", async (w) => {
      // A step inside the step, in a transaction: what you write through tx commits together with the step's result.
      const exists = await w.transaction("find_row", async (tx) => {
        ${query(table)}
        return rows.length > 0;
      });
      if (!exists) w.cancel("the row was deleted");
    });

    // Or "2 days": a waiting run uses no memory.
    this.step("follow_up", { wait: "1 second" }, async (w) => {
      w.log.info(\`${hero} \${w.hero.id} is followed up\`);
    });
  }
}
`,
  };
}

/** A table may have any name, even one that would end the comment. */
const escapeForComment = (name: string) => printable(name).replaceAll("*/", "* /");

/** The query as each driver accepts it, with the shape of its result. */
function query({ database, schema, table, column }: HeroTable): string {
  const quote = identifierQuoters[database];
  const from = [schema, table]
    .filter((part) => part !== undefined)
    .map(quote)
    .join(".");
  const where = `${quote(column)} = ${database === "postgres" ? "$1" : "?"}`;
  const answer = { postgres: "{ rows }", mysql: "[rows]", sqlite: "rows" }[database];
  const text = `SELECT 1 FROM ${from} WHERE ${where}`;
  const sql = /['\\]/.test(text) ? JSON.stringify(text) : `'${text}'`;
  return `const ${answer} = await tx.query(${sql}, [w.hero.id]);`;
}

export const identifierQuoters: Readonly<Record<DatabaseKind, (name: string) => string>> = {
  postgres: (name) => `"${name.replaceAll('"', '""')}"`,
  sqlite: (name) => `"${name.replaceAll('"', '""')}"`,
  mysql: (name) => `\`${name.replaceAll("`", "``")}\``,
};
