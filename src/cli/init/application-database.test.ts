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

test("the option takes precedence over PAWL_URL, PAWL_URL over DATABASE_URL, the environment over .env", () => {
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

test("Turso's own variable has the lowest precedence", () => {
  const turso = "TURSO_DATABASE_URL=libsql://shop.turso.io";
  expect(findUrl({ ".env": turso }, {}, ["@libsql/client"])).toEqual({
    url: "libsql://shop.turso.io",
    from: "TURSO_DATABASE_URL in .env",
    variable: "TURSO_DATABASE_URL",
    kind: "sqlite",
  });
  expect(findUrl({ ".env": `${turso}\nDATABASE_URL=postgres://localhost/a` }).url).toBe("postgres://localhost/a");
});

test("the URL in Prisma's schema may be a variable or a literal", () => {
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
  // The path is relative to the folder of the schema; without libSQL's driver, the scheme is sqlite.
  expect(findUrl(prisma("sqlite", '"file:./dev.db"'))).toMatchObject({ url: "sqlite:./prisma/dev.db", variable: null });
  expect(findUrl(prisma("sqlite", '"file:./dev.db"'), {}, ["libsql"]).url).toBe("libsql:./prisma/dev.db");
});

test("the configuration of Drizzle and Knex is read if its URL is a literal or a variable", () => {
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
])("a driver among the dependencies %j reveals the kind of database", (dependencies, kind) => {
  expect(findUrl({}, {}, dependencies)).toMatchObject({ kind, url: null, variable: "DATABASE_URL" });
});

test("without any configuration the database is a file", () => {
  expect(findUrl({}, { DATABASE_URL: "" }, ["better-sqlite3"])).toMatchObject({
    url: "sqlite:./pawl.db",
    variable: null,
  });
});

test("a database that Pawl does not know is refused by its scheme", () => {
  expect(() => findUrl({}, { DATABASE_URL: "mongodb://localhost" })).toThrow(/DATABASE_URL names .* \("mongodb:"\)/);
});

test("a .env file may have quotes, comments, export and empty values", () => {
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
