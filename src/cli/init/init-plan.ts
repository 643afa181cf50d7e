/** Plans `pawl init`: what it finds in an application, and the files that it would write. Nothing is written here. */
import { isBuiltin } from "node:module";
import { isAbsolute, join } from "node:path";
import { isRemoteUrl } from "../../store/libsql-remote/address.js";
import { sentenceOf } from "../cli-error.js";
import type { DatabaseKind } from "../migration-sql.js";
import { nodeReadsTypeScript, transpilerPackages } from "../transpiler.js";
import { type FoundDatabase, findDatabase } from "./application-database.js";
import { type ConfigFile, renderConfigFile } from "./config-template.js";
import { chooseHeroTable, type KeyType, mostCommonKeyType, type TypedKey, typedKeys } from "./key-types.js";
import { hasOwnMigrations, type PlannedFile, planMigrations } from "./migration-files.js";
import { type Project, readProject } from "./project.js";
import { type ApplicationTables, readRemoteTables, readTables } from "./table-reader.js";
import { type HeroTable, renderFirstWorkflow } from "./workflow-template.js";

export interface InitPlan {
  readonly database: FoundDatabase;
  /** The tables whose keys have a text form, or null if the tables could not be read; then `tablesError` says why. */
  readonly keys: readonly TypedKey[] | null;
  readonly tablesError: string | null;
  readonly keyType: KeyType | null;
  readonly hero: TypedKey | null;
  readonly files: readonly PlannedFile[];
  /** The commands to run next, in order. */
  readonly nextCommands: readonly string[];
}

export interface InitOptions {
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly url: string | undefined;
  readonly schema: string | undefined;
}

export async function planInit({ folder, env, url, schema: schemaOption }: InitOptions): Promise<InitPlan> {
  const project = readProject(folder);
  const database = findDatabase(project, env, url);
  const schema = schemaOption ?? schemaFromUrl(database);
  const { tables, tablesError } = await readApplicationTables(database, folder, schema, findAuthToken(project, env));
  const keys = tables === null ? null : typedKeys(tables.keys);
  const table = chooseHeroTable(keys ?? []);
  const hero: HeroTable | null = table === null ? null : { ...table, database: database.kind, schema };
  const extension = project.isTypeScript ? "ts" : "mjs";
  const workflow = renderFirstWorkflow(hero, project.isTypeScript);
  const hasOwnMigrationTool = hasOwnMigrations(folder);
  const config = renderConfigFile(project, {
    database,
    schema,
    workflows: `workflows/first.${extension}`,
    hasOwnMigrationTool,
  });
  const migrations = planMigrations(folder, database.kind, schema ?? tables?.schema ?? undefined, hero);
  return {
    database,
    keys,
    tablesError,
    keyType: mostCommonKeyType(keys ?? []),
    hero: table,
    files: [
      { path: config.name, text: config.text },
      { path: `workflows/first.${extension}`, text: workflow.text },
      ...migrations,
    ],
    nextCommands: [
      ...(hasOwnMigrationTool ? migrationInstructions(migrations, config, project) : []),
      ...(config.variable === null || (database.variable === config.variable && database.url !== null)
        ? []
        : [`export ${config.variable}=${example(database.kind)}`]),
      ...installCommands(project, database),
      "npx pawl worker",
      workflow.startCommand,
    ],
  };
}

/**
 * Returns what the user has to do before the commands, as shell comments. An existing configuration is not rewritten.
 */
function migrationInstructions(migrations: readonly PlannedFile[], { name }: ConfigFile, project: Project): string[] {
  const paths = migrations.map(({ path }) => path).join(", ");
  const apply = `# apply ${paths} with the tool that applies your migrations`;
  const currentText = project.read(name);
  return currentText === null || /\bmigrate\W+false\b/.test(currentText)
    ? [apply]
    : [apply, `# set \`migrate: false\` in ${name}`];
}

/** Prisma puts the schema into the URL, where the drivers ignore it, so `pawl init` reads it from there. */
function schemaFromUrl({ kind, url }: FoundDatabase): string | undefined {
  if (kind !== "postgres" || url === null || !URL.canParse(url)) return undefined;
  const schemaParameter = new URL(url).searchParams.get("schema");
  return schemaParameter === null || schemaParameter === "public" ? undefined : schemaParameter;
}

const findAuthToken = (project: Project, env: InitOptions["env"]): string | undefined =>
  env.TURSO_AUTH_TOKEN || project.dotEnv.get("TURSO_AUTH_TOKEN")?.value || undefined;

async function readApplicationTables(
  { kind, url }: FoundDatabase,
  folder: string,
  schema: string | undefined,
  authToken: string | undefined,
): Promise<{ readonly tables: ApplicationTables | null; readonly tablesError: string | null }> {
  if (url === null) return { tables: null, tablesError: "its URL is not known yet" };
  try {
    if (isRemoteUrl(url)) return { tables: await readRemoteTables(url, authToken), tablesError: null };
    return {
      tables: await readTables(kind, kind === "sqlite" ? resolveFileUrl(folder, url) : url, schema),
      tablesError: null,
    };
  } catch (error) {
    return { tables: null, tablesError: sentenceOf(error) };
  }
}

/** Paths in the URL are relative to the folder of the application. */
function resolveFileUrl(folder: string, url: string): string {
  const [, scheme, path] = /^(\w+):(.*)$/.exec(url) as unknown as [string, string, string];
  return path.startsWith(":") || path.startsWith("//") || isAbsolute(path) ? url : `${scheme}:${join(folder, path)}`;
}

const example = (kind: DatabaseKind) =>
  ({ postgres: "postgres://user@localhost/app", mysql: "mysql://user@localhost/app", sqlite: "sqlite:./pawl.db" })[
    kind
  ];

const drivers: Readonly<Record<DatabaseKind, string | null>> = {
  postgres: "pg",
  mysql: "mysql2",
  sqlite: isBuiltin("node:sqlite") ? null : "better-sqlite3",
};

function installCommands({ dependencies, isTypeScript }: Project, { kind, url }: FoundDatabase): string[] {
  const driver = url !== null && isRemoteUrl(url) ? "@libsql/client" : drivers[kind];
  const needed = ["pawl", driver].filter((name) => name !== null && !dependencies.has(name));
  const canRead = !isTypeScript || nodeReadsTypeScript || transpilerPackages.some((name) => dependencies.has(name));
  return [
    ...(needed.length === 0 ? [] : [`npm install ${needed.join(" ")}`]),
    ...(canRead ? [] : [`npm install --save-dev ${transpilerPackages[0]}`]),
  ];
}
