import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { redactUrl } from "../../store/shared/secrets.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { formatCount } from "../format-count.js";
import { type InitPlan, planInit } from "../init/init-plan.js";
import type { PlannedFile } from "../init/migration-files.js";
import { colourOf, type Paint } from "../paint.js";
import { printable } from "../table.js";

export const init = command({
  name: "init",
  about: "Set up an application: configuration, a first workflow, SQL migrations",
  args: ["[folder]"],
  options: {
    force: { type: "boolean", about: "Overwrite existing files" },
    "dry-run": { type: "boolean", about: "Only print what would be written" },
  },
  example: "pawl init --url postgres://localhost/app",
  takesFiles: true,

  run: async ({ args, options, globals, out, env }) => {
    const folder = resolve(args[0] ?? ".");
    if (existsSync(folder) && !statSync(folder).isDirectory()) throw new CliError(`${args[0]} is not a folder.`);
    const plan = await planInit({ folder, env, url: globals.url, schema: globals.schema });
    const dryRun = options["dry-run"] === true;
    const files = plan.files.map((file) => {
      const action = actionFor(folder, file, options.force === true);
      if (!dryRun && action === "written") write(folder, file);
      return { path: file.path, action: dryRun && action === "written" ? ("would be written" as const) : action };
    });
    const { database: foundDatabase, keyType, keys, tablesError, hero, nextCommands } = plan;
    const database = {
      kind: foundDatabase.kind,
      url: foundDatabase.url === null ? null : redactUrl(foundDatabase.url),
      from: foundDatabase.from,
    };
    const value = {
      folder,
      database,
      keys: keys === null ? null : { type: keyType, tables: keys.length },
      tablesError,
      hero: hero === null ? null : { table: hero.table, column: hero.column, type: hero.type },
      files,
      next: nextCommands,
    };
    out.print(value, () => [
      ...databaseLines(plan, database.url),
      "",
      ...files.map(({ path, action }) => fileLine(path, action, out.paint)),
      "",
      ...nextLines(args[0], nextCommands, out.paint),
    ]);
  },
});

type Action = "written" | "would be written" | "kept" | "unchanged";

/** An existing file with other content may be the user's work, so only --force overwrites it. */
function actionFor(folder: string, { path, text }: PlannedFile, force: boolean): Exclude<Action, "would be written"> {
  const file = join(folder, path);
  if (!existsSync(file)) return "written";
  if (readFileSync(file, "utf8") === text) return "unchanged";
  return force ? "written" : "kept";
}

function write(folder: string, { path, text }: PlannedFile): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function databaseLines({ database, keys, keyType, tablesError, hero }: InitPlan, url: string | null): string[] {
  const lines = [`Database: ${printable(url ?? database.kind)} (${database.from}).`];
  if (keys === null) return [...lines, `Its tables were not read: ${printable(tablesError ?? "")}`];
  if (hero === null) return [...lines, "It has no tables that a workflow could be about yet."];
  const tablesText = `${formatCount(keys.length, "table")}, keys mostly ${keyType}`;
  return [
    ...lines,
    `Tables: ${tablesText}; the first workflow is about ${printable(hero.table)} (${printable(hero.type)}).`,
  ];
}

const remarks: Readonly<Record<Action, string>> = {
  written: "",
  "would be written": "",
  kept: "  (its content differs; --force overwrites it)",
  unchanged: "",
};

const fileLine = (path: string, action: Action, paint: Paint) =>
  `${paint(colourOf(action === "written" ? "completed" : "pending"), action.padEnd(9))}  ${path}${remarks[action]}`;

function nextLines(folder: string | undefined, next: readonly string[], paint: Paint): string[] {
  const commands = [...(folder === undefined ? [] : [`cd ${folder}`]), ...next];
  return [paint("bold", "Next"), ...commands.map((line) => `  ${line}`)];
}
