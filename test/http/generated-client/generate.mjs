/**
 * Writes the types of an OpenAPI document: `node generate.mjs openapi.json api.d.ts`. openapi-typescript is made for the
 * compiler API of TypeScript 5, which TypeScript 7 does not have, so it gets that version (`typescript5`) instead.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { register } from "node:module";

const hooks = `export const resolve = (specifier, context, next) =>
  next(specifier === "typescript" ? "typescript5" : specifier, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const { astToString, default: openapiTS } = await import("openapi-typescript");
const [, , from, to] = process.argv;
writeFileSync(to, astToString(await openapiTS(JSON.parse(readFileSync(from, "utf8")))));
