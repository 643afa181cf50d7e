/** Renders the configuration file of an application. Passwords are not written into it: they stay in the environment. */
import { isRemoteUrl } from "../../store/libsql-remote/address.js";
import { configNames } from "../config.js";
import { defaultVariable, type FoundDatabase } from "./application-database.js";
import type { Project } from "./project.js";

export interface ConfigFile {
  readonly name: string;
  readonly text: string;
  /** The environment variable that the file reads the URL from, or null if it reads none. */
  readonly variable: string | null;
}

export interface ConfigPlan {
  readonly database: FoundDatabase;
  readonly schema: string | undefined;
  /** The file with the workflows. */
  readonly workflows: string;
  /** Whether the application has its own tool that applies migrations. */
  readonly hasOwnMigrationTool: boolean;
}

export function renderConfigFile(
  project: Project,
  { database, schema, workflows, hasOwnMigrationTool }: ConfigPlan,
): ConfigFile {
  const variable =
    database.url !== null && !hasPassword(database.url) ? database.variable : (database.variable ?? defaultVariable);
  // Without @types/node, the compiler does not know `process`.
  const isTypeScript = project.isTypeScript && (variable === null || project.hasNodeTypes);
  const envFile = variable === null ? null : database.envFile;
  const needsToken =
    variable !== null && database.url !== null && isRemoteUrl(database.url) && !hasPassword(database.url);
  const url = variable === null ? JSON.stringify(database.url) : `process.env.${variable}`;
  const lines = [
    ...(envFile === null ? [] : ['import { existsSync } from "node:fs";', ""]),
    "// Where the database is, and what the workers execute. `npx pawl doctor` checks these settings.",
    ...(envFile === null
      ? []
      : [
          "// Variables that are set in the environment take precedence over the file.",
          `if (existsSync(${JSON.stringify(envFile)})) process.loadEnvFile?.(${JSON.stringify(envFile)});`,
          "",
        ]),
    "export default {",
    `  url: ${url},`,
    ...(schema === undefined ? [] : [`  schema: ${JSON.stringify(schema)},`]),
    ...(database.kind === "postgres" ? poolerLines : []),
    ...(needsToken ? ["  authToken: process.env.TURSO_AUTH_TOKEN,"] : []),
    `  workflows: [${JSON.stringify(`./${workflows}`)}],`,
    ...(hasOwnMigrationTool
      ? [
          "  // Your own tool applies migrations/. If you set this to true, workers migrate the tables, and your tool must not.",
          "  migrate: false,",
        ]
      : [
          "  // Workers migrate the tables. If you set this to false, run `npx pawl migrate`, or apply migrations/ with your own tool.",
          "  migrate: true,",
        ]),
    "};",
  ];
  const existingName = configNames.find((name) => project.read(name) !== null);
  const name = isTypeScript ? "pawl.config.ts" : "pawl.config.mjs";
  // Pawl reads only one configuration file. An existing one of another name is kept: it may have more settings.
  if (existingName !== undefined && existingName !== name)
    return { name: existingName, text: project.read(existingName) as string, variable: null };
  return { name, text: `${lines.join("\n")}\n`, variable };
}

const poolerLines = [
  "  // Behind a pooler (PgBouncer, Supabase, Neon, RDS Proxy): the server itself, for notifications. Without it workers poll.",
  "  // listenUrl: process.env.DIRECT_URL,",
];

const hasPassword = (url: string) => /:\/\/[^/@]*:[^/@]+@|[?&](password|authToken)=/i.test(url);
