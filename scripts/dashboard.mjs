// Builds the dashboard (`npm run build:dashboard`), and generates the types of the API that it uses.

import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { root, run, tool } from "./run.mjs";

/** The types of the answers of the API, from its OpenAPI document, which the tests keep up to date. */
export async function generateApiTypes() {
  mkdirSync(`${root}dashboard/src/api`, { recursive: true });
  const generator = `${root}test/http/generated-client/generate.mjs`;
  return run(process.execPath, [generator, `${root}test/http/openapi.json`, `${root}dashboard/src/api/openapi.d.ts`]);
}

export const checkDashboardTypes = async () =>
  (await generateApiTypes()) || (await run(tool("tsc"), ["-p", "dashboard/tsconfig.json"]));

/** Into dist/dashboard, from where `pawl/http` serves it. */
export const buildDashboard = (more = []) =>
  run(tool("vite"), ["build", "--config", "dashboard/vite.config.ts", "--logLevel", "warn", ...more]);

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) process.exitCode = await buildDashboard();
