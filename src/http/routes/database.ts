/** Routes about the database as a whole: what it contains, and its upkeep. */
import { checkName } from "../../core/naming/names.js";
import type { DatabaseInfo } from "../../index.js";
import { route } from "../route.js";
import { duration, flag, integer, list, nullable, number, object, oneOf, optional, text, time } from "../schema.js";
import { auditFields, operatorOf } from "./common.js";

const bytes = (description: string) => nullable(number(`${description} In bytes; null if the database does not tell.`));

const databaseSchema = object("The database.", {
  description: text("Where the data is, without a password.", { maxLength: 10_000 }),
  engine: text("The product, such as PostgreSQL."),
  version: nullable(text("The version of the product.")),
  bytes: bytes("The size of Pawl's tables and indexes, or of the file that contains them."),
  freeBytes: bytes("The part of the file that is free and will be used again."),
  tables: list(
    "Pawl's tables.",
    object("", {
      name: text("The name of the table, without the prefix `pawl_`."),
      rows: integer("The number of its rows.", 0),
      rowsAre: oneOf("Whether `rows` is exact, a lower bound (10,000 are counted), or an estimate of the database.", [
        "exact",
        "capped",
        "estimated",
      ]),
      bytes: bytes("Its size without its indexes."),
      indexBytes: bytes("The size of its indexes."),
    }),
  ),
  migrations: object("The migrations of the tables.", {
    applied: list(
      "Those that have been applied.",
      object("", {
        version: integer("The number of the migration; the highest is the version of the tables.", 1),
        name: text("What it is called."),
        at: time("When it was applied."),
      }),
    ),
    pending: list("The numbers of those that have not been applied yet.", integer("A number.", 1)),
  }),
  retentionMs: nullable(
    integer("How long ended runs are kept by the settings of the process that answers; null: for ever.", 0),
  ),
  nextHousekeepingAt: nullable(
    time("When a worker of the process that answers next deletes what is older; null if it has no such worker."),
  ),
  checks: list(
    "What `pawl doctor` finds.",
    object("", {
      name: text("What was checked."),
      verdict: oneOf("A warning needs attention; because of a problem nothing works.", ["ok", "warning", "problem"]),
      text: text("The result, and what to do about it.", { maxLength: 100_000 }),
    }),
  ),
});

const databaseView = ({ migrations, nextHousekeepingAt, ...info }: DatabaseInfo) => ({
  ...info,
  migrations: {
    applied: migrations.applied.map(({ at, ...migration }) => ({ ...migration, at: at.toISOString() })),
    pending: migrations.pending,
  },
  nextHousekeepingAt: nextHousekeepingAt?.toISOString() ?? null,
});

export const databaseRoutes = [
  route(
    "GET",
    "/api/v1/database",
    "getDatabase",
    {
      summary: "Describe the database: tables, sizes, migrations, and what needs attention",
      requires: "read",
      answers: { 200: databaseSchema },
    },
    async ({ pawl, questions }) => ({ json: databaseView(await questions.ask("database", () => pawl.database())) }),
  ),
  route(
    "POST",
    "/api/v1/prune",
    "prune",
    {
      summary: "Delete runs that ended long ago",
      requires: "prune",
      body: object("", {
        olderThan: duration("How long ago a run and its descendants must have ended."),
        workflow: optional(text("Only runs of this workflow.")),
        limit: optional(integer("Stops after this many runs.", 1)),
        dryRun: optional(flag("Deletes nothing and only counts.")),
        ...auditFields,
      }),
      answers: {
        200: object("What was deleted, or would be.", {
          runs: integer("The number of runs, including children.", 0),
          trees: integer("The number of runs with their children and retries.", 0),
        }),
      },
    },
    async (call) => {
      const { by: _by, reason: _reason, ...options } = call.body;
      if (options.workflow !== undefined) checkName("workflow", options.workflow);
      const result = await call.pawl.prune({ ...options, signal: call.signal } as never);
      if (options.dryRun !== true)
        call.pawl.internals.log.info(`${result.runs} run(s) were pruned by ${operatorOf(call)}.`);
      return { json: result };
    },
  ),
  route(
    "POST",
    "/api/v1/verify",
    "verify",
    {
      summary: "Compare the stored data of a run, or of all runs, with the logs",
      requires: "prune",
      body: object("", { run: optional(text("The id of the only run to check.")), ...auditFields }),
      answers: {
        200: object("", {
          runs: integer("The number of runs that were checked.", 0),
          events: integer("The number of events that were read.", 0),
          found: integer("The number of differences.", 0),
          unchecked: integer("The number of hashes that could not be recomputed.", 0),
          differences: list(
            "The differences; at most 1,000.",
            object("", {
              kind: text("The kind of the difference."),
              runId: nullable(text("The run.")),
              text: nullable(text("The difference in one sentence.", { maxLength: 100_000 })),
            }),
          ),
        }),
      },
      problems: [404],
    },
    async (call) => {
      const { pawl, body, writer } = call;
      const { differences, ...numbers } = await pawl.verify(body.run);
      pawl.internals.log.info(`${numbers.runs} run(s) were verified by ${operatorOf(call)}.`);
      const views = differences.map(({ kind, runId, text: sentence }) => ({
        ...{ kind, runId },
        text: writer.text(sentence, runId === null ? {} : { runId }),
      }));
      return { json: { ...numbers, differences: views } };
    },
  ),
];
