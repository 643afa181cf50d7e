import { expect, test } from "vitest";
import { findDatabase } from "./application-database.js";
import { parseEnv } from "./env-file.js";
import type { Project } from "./project.js";

function project(files: Readonly<Record<string, string>>, dependencies: readonly string[] = []): Project {
  const dotEnv = parseEnv(files[".env"] ?? "").map(([name, value]) => [name, { value, file: ".env" }] as const);
  return {
    folder: "/app",
    isTypeScript: true,
    hasNodeTypes: true,
    dependencies: new Set(dependencies),
    dotEnv: new Map(dotEnv),
    read: (name) => files[name] ?? null,
  };
}

const findUrl = (
  files: Readonly<Record<string, string>>,
  env: Record<string, string> = {},
  dependencies: string[] = [],
) => {
  const { url, from, variable, kind } = findDatabase(project(files, dependencies), env, undefined);
  return { url, from, variable, kind };
};

const prisma = (provider: string, url: string) => ({
  "prisma/schema.prisma": `generator client {\n}\ndatasource db {\n  provider = "${provider}"\n  url      = ${url}\n}\n`,
});

test("the option goes before PAWL_URL, that before DATABASE_URL, the environment before .env", () => {
  const app = project({ ".env": "PAWL_URL=mysql://file/pawl\nDATABASE_URL=mysql://file/app" });
  const env = { PAWL_URL: "postgres://env/pawl", DATABASE_URL: "postgres://env/app" };
  expect(findDatabase(app, env, "sqlite:x.db").url).toBe("sqlite:x.db");
  expect(findDatabase(app, env, undefined).url).toBe("postgres://env/pawl");
  expect(findDatabase(app, { DATABASE_URL: "postgres://env/app" }, undefined).url).toBe("mysql://file/pawl");
  expect(findUrl({ ".env": "DATABASE_URL=mysql://file/app" })).toEqual({
    url: "mysql://file/app",
    from: "DATABASE_URL in .env",
    variable: "DATABASE_URL",
    kind: "mysql",
  });
});

test("Turso's own variable is looked for last", () => {
  const turso = "TURSO_DATABASE_URL=libsql://shop.turso.io";
  expect(findUrl({ ".env": turso }, {}, ["@libsql/client"])).toEqual({
    url: "libsql://shop.turso.io",
    from: "TURSO_DATABASE_URL in .env",
    variable: "TURSO_DATABASE_URL",
    kind: "sqlite",
  });
  expect(findUrl({ ".env": `${turso}\nDATABASE_URL=postgres://localhost/a` }).url).toBe("postgres://localhost/a");
});

test("Prisma says where its database is: in a variable, or in so many words", () => {
  expect(findUrl({ ...prisma("postgresql", 'env("DB")'), ".env": "DB=postgresql://localhost/app" })).toEqual({
    url: "postgresql://localhost/app",
    from: "prisma/schema.prisma: DB in .env",
    variable: "DB",
    kind: "postgres",
  });
  expect(findUrl(prisma("mysql", 'env("DB")'))).toMatchObject({
    url: null,
    kind: "mysql",
    from: "prisma/schema.prisma",
  });
  // Relative to the schema's folder, and without libSQL's driver.
  expect(findUrl(prisma("sqlite", '"file:./dev.db"'))).toMatchObject({ url: "sqlite:./prisma/dev.db", variable: null });
  expect(findUrl(prisma("sqlite", '"file:./dev.db"'), {}, ["libsql"]).url).toBe("libsql:./prisma/dev.db");
});

test("Drizzle's and Knex's configuration is read where it is plain", () => {
  expect(
    findUrl({ "drizzle.config.ts": 'export default { dbCredentials: { url: "postgres://localhost/a" } };' }),
  ).toMatchObject({
    url: "postgres://localhost/a",
    from: "drizzle.config.ts",
  });
  const knex = { "knexfile.js": "module.exports = { client: 'mysql2', connection: process.env.KNEX_URL };" };
  expect(findUrl(knex, { KNEX_URL: "mysql://localhost/a" })).toMatchObject({
    url: "mysql://localhost/a",
    variable: "KNEX_URL",
  });
  expect(findUrl(knex).url).toBe("sqlite:./pawl.db");
});

test.each([
  [["pg"], "postgres"],
  [["mysql2", "express"], "mysql"],
])("a driver among the dependencies %j tells the kind", (dependencies, kind) => {
  expect(findUrl({}, {}, dependencies)).toMatchObject({ kind, url: null, variable: "DATABASE_URL" });
});

test("without any hint it is a file", () => {
  expect(findUrl({}, { DATABASE_URL: "" }, ["better-sqlite3"])).toMatchObject({
    url: "sqlite:./pawl.db",
    variable: null,
  });
});

test("a database that Pawl does not know is said to be one", () => {
  expect(() => findUrl({}, { DATABASE_URL: "mongodb://localhost" })).toThrow(/DATABASE_URL names .* \("mongodb:"\)/);
});

test(".env files: quotes, comments, export, empty values", () => {
  const text = `# comment\nA=1\nexport B = "two # not a comment" # a comment\nC='three'\nD=\nE=a=b#c\n  F=x y  \nnot a line\n`;
  expect(Object.fromEntries(parseEnv(text))).toEqual({
    A: "1",
    B: "two # not a comment",
    C: "three",
    D: "",
    E: "a=b",
    F: "x y",
  });
});
