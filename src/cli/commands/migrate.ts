import { formatMigrations } from "../../client/operate/doctor.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { readSettings } from "../config.js";
import { checkExists, createLogger, openBareStore } from "../database.js";
import { migrationSql } from "../migration-sql.js";

export const migrate = command({
  name: "migrate",
  about: "Bring the tables up to date",
  args: [],
  options: {
    status: { type: "boolean", about: "Only show what is pending" },
    sql: { type: "boolean", about: "Only print the SQL of all migrations, without connecting" },
  },
  example: "pawl migrate --sql --url postgres: > pawl.sql",

  run: async (call) => {
    const { out, options } = call;
    const settings = await readSettings(call);
    if (options.sql === true) {
      if (options.status === true) throw new CliError("Give --sql or --status, not both.");
      const files = migrationSql(settings.url, settings.schema);
      return out.print(files, () => files.map(({ sql }) => sql.trimEnd()));
    }
    if (options.status === true) checkExists(settings.url);
    const store = await openBareStore(settings, createLogger(out).debug);
    try {
      const database = store.description;
      const pending = await store.pendingMigrations();
      if (options.status === true) {
        return out.print({ database, pending }, () =>
          pending.length === 0 ? `${database} is up to date.` : `${database} lacks ${formatMigrations(pending)}.`,
        );
      }
      await store.migrate();
      out.print({ database, applied: pending }, () =>
        pending.length === 0 ? `${database} was up to date.` : `${database}: applied ${formatMigrations(pending)}.`,
      );
    } finally {
      await store.close();
    }
  },
});
