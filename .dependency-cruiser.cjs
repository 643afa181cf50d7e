// Who may import whom (the table in ARCHITECTURE.md, checked). Tests are exempt: a test beside a core module may well
// need a store. scripts/dashboard-imports.mjs checks the dashboard.

const test = "[.]test[.]ts$";

/** Files of `folder` may import, among our own sources, only what `allowed` matches. */
const only = (folder, allowed, why) => ({
  name: `${folder}-imports`,
  comment: why,
  severity: "error",
  from: { path: `^src/${folder}/`, pathNot: test },
  to: { path: "^src/", pathNot: [`^src/${folder}/`, ...allowed] },
});

/** Clocks, timers, chance; batchers, semaphores: neither knows anything of workflows, so every room may use them. */
const tools = "^src/(runtime|concurrency)/";
const core = "^src/core/";
const define = "^src/define/";
/** What has become durable is told by whoever wrote it. */
const telemetry = "^src/telemetry/";
const storeInterface = "^src/store/contract/";

/** Where users come in: `connect`, what opens a store, what telemetry is begun with, the thread of the watchdog, the shells. */
const edges = [
  "^src/(connect|watchdog-thread)[.]ts$",
  "^src/store/[^/]+/index[.]ts$",
  "^src/telemetry/(otel-traces|span-ids)[.]ts$",
  "^src/(runtime|testing|cli)/",
];

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: "core-is-pure",
      comment: "core/ has no I/O, clock or randomness: it imports nothing but itself, not even Node.",
      severity: "error",
      from: { path: core, pathNot: test },
      to: { pathNot: core },
    },
    only("runtime", [], "The one seam to clock, timers and chance knows nothing of Pawl."),
    only("concurrency", ["^src/runtime/"], "Batchers, semaphores and backoffs know nothing of workflows."),
    only("define", [core, tools], "An authoring style only makes definitions; it knows neither stores nor workers."),
    only("store", [core, tools], "A store keeps rows and has no opinion about workflows."),
    only(
      "worker",
      [core, define, tools, storeInterface, telemetry],
      "A worker sees a store only through its interface, and no client.",
    ),
    only(
      "client",
      [core, define, tools, storeInterface, telemetry],
      "A client sees a store only through its interface, and no worker.",
    ),
    only(
      "telemetry",
      [core, define, tools, storeInterface],
      "Telemetry listens; it knows neither workers nor clients.",
    ),
    {
      name: "system-runtime-at-the-edges",
      comment:
        "The clocks, timers and chance of the process are chosen where a user comes in; all others are given them.",
      severity: "error",
      from: { path: "^src/", pathNot: [...edges, test] },
      to: { path: "^src/runtime/system[.]ts$" },
    },
    {
      name: "only-the-session-knows-the-turn",
      comment: "Parts of a turn name the ports that they use (worker/turn/ports.ts); the turn is their composition.",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/worker/session/session[.]ts$", test] },
      to: { path: "^src/worker/turn/turn[.]ts$" },
    },
    {
      name: "shells-are-leaves",
      comment: "cli and http are shells around the library: nothing imports them (the cli may serve the HTTP API).",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/(cli|http)/", test] },
      to: { path: "^src/(cli|http)/" },
    },
    {
      name: "http-does-not-import-cli",
      comment: "The cli may serve the HTTP API, never the other way round.",
      severity: "error",
      from: { path: "^src/http/", pathNot: test },
      to: { path: "^src/cli/" },
    },
    {
      name: "nothing-imports-the-dashboard",
      comment:
        "The HTTP API serves the files of its build (src/http/dashboard/assets.ts); nothing imports its sources.",
      severity: "error",
      from: { path: "^src/", pathNot: test },
      to: { path: "^(dashboard|dist)/" },
    },
    {
      // A type-only import counts like any other: two files that name each other's types cannot be read one after the
      // other.
      name: "no-cycles",
      comment: "A cycle of imports has no first file to read. Move the type to the file that defines its concept.",
      severity: "error",
      from: { path: "^src/", pathNot: test },
      to: { circular: true },
    },
    {
      name: "no-dev-dependencies",
      comment: "The published library has no dependencies but the optional drivers; not even its types may need more.",
      severity: "error",
      from: { path: "^src/", pathNot: test },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["npm-peer"] },
    },
    {
      name: "resolvable",
      comment: "An import that leads nowhere would slip past every rule above.",
      severity: "error",
      from: { path: "^src/" },
      to: { couldNotResolve: true },
    },
  ],
  options: {
    // TypeScript 7 has no compiler API for dependency-cruiser to read .ts files with: it would find no import at all
    // and report success. swc reads them instead.
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
      extensions: [".ts", ".js", ".json"],
    },
  },
};
