import { systemRuntime } from "../../runtime/system.js";
import { CliError } from "../cli-error.js";
import { type Call, command, type OptionSpecs } from "../command.js";
import { readSettings } from "../config.js";
import { addressArgument, DashboardServer } from "../dashboard-server.js";
import { createLogger, openDatabase } from "../database.js";
import { loadDefinitions } from "../module-loader.js";
import { openBrowser } from "../open-browser.js";
import { waitForStopSignal } from "../stop-signal.js";

const options = {
  port: { type: "string", value: "<n>", about: "The port; default 4000, or the next free one" },
  host: { type: "string", value: "<address>", about: "An address of this machine; default 127.0.0.1" },
  "read-only": { type: "boolean", about: "Show everything, and change nothing" },
  label: { type: "string", value: "<text>", about: "The name of the environment above every page: production" },
  open: { type: "boolean", about: "Open it in the browser" },
} as const satisfies OptionSpecs;

export const dashboard = command({
  name: "dashboard",
  about: "Serve the dashboard to the browsers of this machine until stopped",
  args: ["[file…]"],
  options,
  example: "pawl dashboard --read-only --label production --open",
  takesFiles: true,

  run: async (call) => {
    const address = addressArgument(call.options.host, call.options.port);
    const { label } = call.options;
    if (label !== undefined && (label.trim() === "" || label.length > 60))
      throw new CliError("--label is a text of at most 60 characters.");
    const settings = await readSettings(call);
    const { workflows } = await loadDefinitions(call.args);
    const stopRequested = waitForStopSignal({
      process,
      now: () => systemRuntime.monotonic(),
      exitNow: () => process.exit(1),
    });
    const { pawl } = await openDatabase(settings, call.out, { logger: createLogger(call.out) });
    try {
      const server = await DashboardServer.listen(address);
      try {
        const isReadOnly = call.options["read-only"] === true;
        await server.serve(pawl, { isReadOnly, dashboard: label === undefined ? {} : { label }, workflows });
        announce(call, server.url, pawl.description);
        const signal = await stopRequested;
        call.out.event({ event: "dashboard.stopped", signal }, () => "The dashboard has stopped.");
      } finally {
        await server.close();
      }
    } finally {
      await pawl.close();
    }
  },
});

function announce({ out, options: given }: Call<typeof options>, url: string, database: string): void {
  const readOnly = given["read-only"] === true;
  out.event({ event: "dashboard.started", url, database, readOnly }, () =>
    [
      `Dashboard: ${out.paint("bold", url)}`,
      `It shows ${database} to browsers on this machine only${readOnly ? ", and changes nothing" : ""}. Ctrl-C stops it.`,
    ].join("\n"),
  );
  if (given.open === true) openBrowser(url, () => out.note("No browser could be opened; open the address yourself."));
}
