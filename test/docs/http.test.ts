/** docs/http.md names every route, permission and code of the HTTP API. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { permissions } from "../../src/http/access.js";
import { problemTitles } from "../../src/http/problem.js";
import { allRoutes } from "../../src/http/routes.js";

const page = readFileSync(new URL("../../docs/http.md", import.meta.url), "utf8");

/** The part of the page below a heading. */
const section = (heading: string) =>
  page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? expect.fail(`There is no "${heading}".`);

test("every permission is explained", () => {
  for (const permission of permissions) expect(section("Who may do what")).toContain(`\n| \`${permission}\` | `);
});

test("every code is in the table of problems", () => {
  for (const code of Object.keys(problemTitles)) expect(section("Problems")).toContain(`\`${code}\``);
});

test("every parameter of the list of runs is explained", () => {
  const { query } = allRoutes.find(({ operationId }) => operationId === "listRuns") ?? expect.fail();
  for (const name of Object.keys(query?.fields ?? {})) expect(page).toMatch(new RegExp(`[\`?&]${name}\\b`));
});

test.each(allRoutes.map((route) => [`${route.method} ${route.path}`, route] as const))("%s is named", (name, route) => {
  const ofRun = /^\/api\/v1\/runs\/\{run\}\/([\w-]+)$/.exec(route.path)?.[1];
  if (ofRun === undefined) expect(page).toContain(`\`${name}`);
  else if (route.method === "GET") expect(section("Read one run")).toMatch(new RegExp(`^\\| \`/${ofRun}\\b`, "m"));
  else expect(section("Command runs")).toContain(`\n| \`${ofRun}\` | \`${route.requires}\` | `);
});
