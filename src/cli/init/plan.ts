/** What `pawl init` finds in an application and would write into it. Nothing is written here. */
import { isBuiltin } from "node:module";
import { isAbsolute, join } from "node:path";
import { isRemote } from "../../store/libsql-remote/address.js";
import { sentenceOf } from "../cli-error.js";
import type { DatabaseKind } from "../migration-sql.js";
import { nodeReadsTypeScript, readers } from "../transpile.js";
import { type FoundDatabase, findDatabase } from "./find-url.js";
import { heroTable, type KeyType, type TypedKey, typedKeys, usualKeyType } from "./key-types.js";
import { type Project, projectIn } from "./project.js";
import { type ReadTables, readRemote, readTables } from "./read-tables.js";
import { type ConfigFile, configFile } from "./write-config.js";
import { hasMigrations, type PlannedFile, plannedMigrations } from "./write-migrations.js";
import { firstWorkflow, type HeroTable } from "./write-workflow.js";

export interface InitPlan {
  readonly found: FoundDatabase;
  /** Its tables with a key that Pawl can name; null: they could not be looked at, `trouble` says why. */
  readonly keys: readonly TypedKey[] | null;
  readonly trouble: string | null;
  readonly keyType: KeyType | null;
  readonly hero: TypedKey | null;
  readonly files: readonly PlannedFile[];
  /** Commands, in the order in which they are to be run. */
  readonly next: readonly string[];
}

export interface InitOptions {
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly url: string | undefined;
  readonly schema: string | undefined;
}

export async function planInit({ folder, env, url, schema: given }: InitOptions): Promise<InitPlan> {
  const project = projectIn(folder);
  const found = findDatabase(project, env, url);
  const schema = given ?? schemaIn(found);
  const { tables, trouble } = await look(found, folder, schema, tokenIn(project, env));
  const keys = tables === null ? null : typedKeys(tables.keys);
  const table = heroTable(keys ?? []);
  const hero: HeroTable | null = table === null ? null : { ...table, database: found.kind, schema };
  const ending = project.isTypeScript ? "ts" : "mjs";
  const workflow = firstWorkflow(hero, project.isTypeScript);
  const ownTool = hasMigrations(folder);
  const config = configFile(project, { found, schema, workflows: `workflows/first.${ending}`, ownTool });
  const migrations = plannedMigrations(folder, found.kind, schema ?? tables?.schema ?? undefined, hero);
  return {
    found,
    keys,
    trouble,
    keyType: usualKeyType(keys ?? []),
    hero: table,
    files: [
      { path: config.name, text: config.text },
      { path: `workflows/first.${ending}`, text: workflow.text },
      ...migrations,
    ],
    next: [
      ...(ownTool ? applying(migrations, config, project) : []),
      ...(config.variable === null || (found.variable === config.variable && found.url !== null)
        ? []
        : [`export ${config.variable}=${example(found.kind)}`]),
      ...installs(project, found),
      "npx pawl worker",
      workflow.start,
    ],
  };
}

/** Not a command, but what comes first: in the form that a shell passes over. A configuration that is there is not rewritten. */
function applying(migrations: readonly PlannedFile[], { name }: ConfigFile, project: Project): string[] {
  const paths = migrations.map(({ path }) => path).join(", ");
  const apply = `# apply ${paths} with the tool that applies your migrations`;
  const there = project.read(name);
  return there === null || /\bmigrate\W+false\b/.test(there) ? [apply] : [apply, `# say \`migrate: false\` in ${name}`];
}

/** Prisma puts it into the URL, where the drivers pass over it. */
function schemaIn({ kind, url }: FoundDatabase): string | undefined {
  if (kind !== "postgres" || url === null || !URL.canParse(url)) return undefined;
  const named = new URL(url).searchParams.get("schema");
  return named === null || named === "public" ? undefined : named;
}

const tokenIn = (project: Project, env: InitOptions["env"]): string | undefined =>
  env.TURSO_AUTH_TOKEN || project.dotEnv.get("TURSO_AUTH_TOKEN")?.value || undefined;

async function look(
  { kind, url }: FoundDatabase,
  folder: string,
  schema: string | undefined,
  authToken: string | undefined,
): Promise<{ readonly tables: ReadTables | null; readonly trouble: string | null }> {
  if (url === null) return { tables: null, trouble: "its address is not known yet" };
  try {
    if (isRemote(url)) return { tables: await readRemote(url, authToken), trouble: null };
    return { tables: await readTables(kind, kind === "sqlite" ? fileIn(folder, url) : url, schema), trouble: null };
  } catch (error) {
    return { tables: null, trouble: sentenceOf(error) };
  }
}

/** Paths are relative to where the application runs. */
function fileIn(folder: string, url: string): string {
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

function installs({ dependencies, isTypeScript }: Project, { kind, url }: FoundDatabase): string[] {
  const driver = url !== null && isRemote(url) ? "@libsql/client" : drivers[kind];
  const needed = ["pawl", driver].filter((name) => name !== null && !dependencies.has(name));
  const canRead = !isTypeScript || nodeReadsTypeScript || readers.some((name) => dependencies.has(name));
  return [
    ...(needed.length === 0 ? [] : [`npm install ${needed.join(" ")}`]),
    ...(canRead ? [] : [`npm install --save-dev ${readers[0]}`]),
  ];
}
