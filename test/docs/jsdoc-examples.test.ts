/** The examples in the JSDoc comments of public names compile against the sources. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { type PublicName, publicNames } from "./public-api.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const names = publicNames();

/**
 * What an example may use without declaring it: Pawl's objects, and the objects of an application. Public names of Pawl are
 * imported.
 */
const prelude = `
import type { JobDefinition, Pawl, RunHandle, StepIterator, Store, Worker, WorkflowContext, WorkflowDefinition } from "pawl";
import type { TestPawl } from "pawl/testing";
declare global {
  const pawl: Pawl;
  const ctx: WorkflowContext<any>;
  const run: RunHandle<any, any>;
  const worker: Worker;
  const store: Store;
  const iter: StepIterator;
  const t: TestPawl;
  const order: WorkflowDefinition<any, any>;
  const report: WorkflowDefinition<any, any>;
  const resize: JobDefinition<any, any>;
  const aggregate: JobDefinition<any, any>;
  const input: any;
  interface User { readonly id: string; readonly name: string; readonly email: string; readonly deactivated: boolean }
  interface Order { readonly id: string; readonly total: number }
  const user: User;
  const users: { find(id: string): Promise<User | null> };
  const mail: { send(...args: any[]): Promise<string>; welcome(user: User): Promise<void>; reminder(user: User): Promise<void> };
  const payments: { charge(...args: any[]): Promise<{ readonly id: string }>; refund(...args: any[]): Promise<void> };
  const pay: (cents: number) => Promise<string>;
  const bank: any;
  const db: any;
  const images: any;
  const event: { readonly id: string };
  const ids: readonly string[];
  const app: { get(path: string, handler: (request: any, reply: any) => unknown): void };
}
`;

/** The blocks of TypeScript in a comment, and the code behind \`@example\` that has no fence. */
function examplesIn(doc: string): string[] {
  const fenced = [...doc.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code as string);
  const [, ...tagged] = doc.replace(/^```[\s\S]*?^```/gm, "").split(/^@example\b/m);
  const unfenced = tagged.map((text) => text.replace(/^@[\s\S]*$/m, "").trim()).filter((code) => code !== "");
  return [...fenced, ...unfenced];
}

/** The example as a module that imports the public names which it uses and does not declare. */
function moduleOf(code: string): string {
  const words = new Set(code.match(/\b[A-Za-z]\w*\b/g));
  const declared = new Set(
    [
      ...code.matchAll(/\b(?:const|let|class|function|interface|type|import) (?:type )?(\w+|\{[^}]*\}|\[[^\]]*\])/g),
    ].flatMap(([, names]) => (names as string).match(/\w+/g) ?? []),
  );
  const used = names.filter(({ path }) => words.has(path) && !declared.has(path));
  const imports = used.map(({ path, kind, entry }) => {
    const isType = kind === "interface" || kind === "type";
    return `import { ${isType ? "type " : ""}${path} } from "${entry}";`;
  });
  return `${imports.join(" ")} export {};\n${code}\n`;
}

const examples = new Map<string, PublicName>(
  names.flatMap((name) => examplesIn(name.doc).map((code) => [code, name] as const)).toReversed(),
);

test("examples are found with and without fences", () => {
  expect(examplesIn("Prose.\n\n```ts\na();\n```\n\n@example b();\n@example\nc();\n@param d not code")).toEqual([
    "a();\n",
    "b();",
    "c();",
  ]);
  expect(examples.size).toBeGreaterThan(10);
});

// Within the repository, so that "pawl" is found from there; where no other tool looks.
const cache = join(root, "node_modules/.cache");
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, "pawl-examples-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("every example compiles", async () => {
  const files = [...examples].map(([code, { path, file }], index) => {
    const name = `example-${index}.mts`;
    writeFileSync(join(folder, name), moduleOf(code));
    return { name, place: `${file}:${path}` };
  });
  writeFileSync(join(folder, "prelude.d.mts"), prelude);
  const config = join(folder, "tsconfig.json");
  // Few applications set exactOptionalPropertyTypes: `{ authToken: process.env.TOKEN }` is fine for them.
  const compilerOptions = { exactOptionalPropertyTypes: false };
  writeFileSync(config, JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.mts"] }));
  const tsc = join(root, "node_modules/.bin/tsc");
  const errors = await promisify(execFile)(process.execPath, [tsc, "-p", config, "--pretty", "false"], {
    cwd: folder,
  }).then(
    () => "",
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`,
  );
  const places = new Map(files.map(({ name, place }) => [name, place]));
  expect(errors.replace(/\S*?(example-\d+\.mts)/g, (whole, name) => places.get(name) ?? whole)).toBe("");
});
