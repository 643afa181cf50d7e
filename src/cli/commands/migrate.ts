import { command } from "../command.js";
import { settingsOf } from "../config.js";
import { checkExists, loggerFor, migrations, openBareStore } from "../database.js";

export const migrate = command({
  name: "migrate",
  about: "Bring the tables up to date",
  args: [],
  options: { status: { type: "boolean", about: "Only show what is pending" } },
  example: "pawl migrate --status",

  run: async (call) => {
    const { out, options } = call;
    const settings = await settingsOf(call);
    if (options.status === true) checkExists(settings.url);
    const store = await openBareStore(settings, loggerFor(out).debug);
    try {
      const database = store.description;
      const pending = await store.pendingMigrations();
      if (options.status === true) {
        return out.print({ database, pending }, () =>
          pending.length === 0 ? `${database} is up to date.` : `${database} lacks ${migrations(pending)}.`,
        );
      }
      await store.migrate();
      out.print({ database, applied: pending }, () =>
        pending.length === 0 ? `${database} was up to date.` : `${database}: applied ${migrations(pending)}.`,
      );
    } finally {
      await store.close();
    }
  },
});
