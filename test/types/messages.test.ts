/**
 * The compiler's error for a missing or wrong argument names that argument, and no type that the user does not know.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

const mistakes = {
  "start(order)": ["Expected 2-3 arguments, but got 1.", "'inputAndOptions' were not provided"],
  "start(order, {})": ["Property 'sku' is missing in type '{}' but required in type '{ sku: string; }'."],
  "start(order, 7)": ["Argument of type 'number' is not assignable to parameter of type '{ sku: string; }'."],
  'start(order, { sku: "" }, { idempotentKey: "x" })': ["Did you mean to write 'idempotencyKey'?"],
  "start(Onboarding, { ids: [] })": ["Expected 3 arguments, but got 2."],
  "start(Onboarding, { ids: [] }, {})": ["Property 'hero' is missing in type '{}'"],
  'start(Wrong, undefined, { hero: { type: "User", id: "1" } })': ["The types returned by 'loadHero(...)' are"],
  'start(Unloaded, { hero: { type: "User", id: "1" } })': ["Property 'loadHero' is missing in type 'typeof Unloaded'"],
  'run("id").signal(shipped)': ["Expected 2-3 arguments, but got 1."],
  'run("id").signal(shipped, {})': ["Property 'parcel' is missing in type '{}' but required in type"],
  'run("id").signal(5)': ["Argument of type 'number' is not assignable to parameter of type 'SignalName<"],
  'start("order", { sku: "" })': ["Argument of type 'string' is not assignable to parameter of type 'AnyWorkflow'."],
};

const preamble = `
import { type Pawl, signal, Workflow, workflow } from "pawl";
const shipped = signal<{ parcel: string }>("shipped");
declare const pawl: Pawl;
const order = workflow("order", async (_ctx, input: { sku: string }) => input.sku);
class Onboarding extends Workflow<{ id: string }, { ids: number[] }> {
  static loadHero = (id: string) => ({ id });
  async send_reminder() {}
}
class Unloaded extends Workflow<{ name: string }> {}
class Wrong extends Workflow<{ id: string }> {
  static loadHero = (name: string) => ({ name });
}
`.trim();

let diagnostics: string[];
// The directory is inside the repository, so that the types of Node are found, and in a place that no other tool reads.
const cache = join(root, "node_modules/.cache");
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, "pawl-types-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(async () => {
  const config = join(folder, "tsconfig.json");
  writeFileSync(
    join(folder, "mistakes.mts"),
    [preamble, ...Object.keys(mistakes).map((one) => `pawl.${one};`)].join("\n"),
  );
  writeFileSync(config, JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["*.mts"] }));
  const args = [join(root, "node_modules/.bin/tsc"), "-p", config, "--pretty", "true"];
  const output = await promisify(execFile)(process.execPath, args, { cwd: folder }).catch(({ stdout }) => ({ stdout }));
  const plain = String(output.stdout).replace(/\p{Cc}\[[\d;]*m/gu, "");
  // If node_modules is a symbolic link, tsc prints the path of its target.
  diagnostics = plain.split(/^(?:\S*\/)?mistakes\.mts:/m).slice(1);
});

test.each(Object.entries(mistakes))("pawl.%s", (mistake, words) => {
  const line = preamble.split("\n").length + 1 + Object.keys(mistakes).indexOf(mistake);
  const [diagnostic, ...more] = diagnostics.filter((one) => one.startsWith(`${line}:`));
  expect(more).toEqual([]);
  for (const word of words) expect(diagnostic).toContain(word);
  expect(diagnostic).not.toContain("overload matches");
});
