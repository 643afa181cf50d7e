/** The configuration file of an application. Passwords are not written down: they stay in the environment. */
import { isRemoteUrl } from "../../store/libsql-remote/address.js";
import { configNames } from "../config.js";
import { defaultVariable, type FoundDatabase } from "./application-database.js";
import type { Project } from "./project.js";

export interface ConfigFile {
  readonly name: string;
  readonly text: string;
  /** The variable that it reads the URL from, if it does. */
  readonly variable: string | null;
}

export interface ConfigPlan {
  readonly database: FoundDatabase;
  readonly schema: string | undefined;
  /** The file to serve. */
  readonly workflows: string;
  /** The application's own tool applies the migrations. */
  readonly hasOwnMigrationTool: boolean;
}

export function renderConfigFile(
  project: Project,
  { database, schema, workflows, hasOwnMigrationTool }: ConfigPlan,
): ConfigFile {
  const variable =
    database.url !== null && !hasPassword(database.url) ? database.variable : (database.variable ?? defaultVariable);
  // `process` is unknown to a compiler that has no types of Node.
  const isTypeScript = project.isTypeScript && (variable === null || project.hasNodeTypes);
  const envFile = variable === null ? null : database.envFile;
  const needsToken =
    variable !== null && database.url !== null && isRemoteUrl(database.url) && !hasPassword(database.url);
  const url = variable === null ? JSON.stringify(database.url) : `process.env.${variable}`;
  const lines = [
    ...(envFile === null ? [] : ['import { existsSync } from "node:fs";', ""]),
    "// Where the database is and what workers serve. `npx pawl doctor` looks whether it is all in order.",
    ...(envFile === null
      ? []
      : [
          "// What the environment says goes before what the file says.",
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
          "  // Your own tool makes the tables, from migrations/. True: workers bring them up to date, and it must not.",
          "  migrate: false,",
        ]
      : [
          "  // Workers bring the tables up to date. False: only `npx pawl migrate` does, or your own tool with migrations/.",
          "  migrate: true,",
        ]),
    "};",
  ];
  const existingName = configNames.find((name) => project.read(name) !== null);
  const name = isTypeScript ? "pawl.config.ts" : "pawl.config.mjs";
  // Of two, one would be passed over. The one that is there may say more than this one would.
  if (existingName !== undefined && existingName !== name)
    return { name: existingName, text: project.read(existingName) as string, variable: null };
  return { name, text: `${lines.join("\n")}\n`, variable };
}

const poolerLines = [
  "  // Behind PgBouncer, Supabase's or Neon's pooler, or RDS Proxy: the server itself, for wake-ups. Without it workers poll.",
  "  // listenUrl: process.env.DIRECT_URL,",
];

const hasPassword = (url: string) => /:\/\/[^/@]*:[^/@]+@|[?&](password|authToken)=/i.test(url);
