/** Workflow files of the user, in JavaScript or TypeScript, get the Pawl of the program. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { type Folder, newFolder } from "./command-line.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** `graph` loads a file and does nothing else. */
const namesIn = async (folder: Folder, file: string): Promise<string[]> =>
  (await folder.json("graph", file)).map(({ name }: { name: string }) => name);

/** Runs in a process of its own, because the shared process may have loaded the tool or the file already. */
const namesInFresh = async (folder: Folder, file: string): Promise<string[]> => {
  const { stdout } = await folder.begin(["graph", file, "--json"]).exited;
  return JSON.parse(stdout).map(({ name }: { name: string }) => name);
};

/** Newer versions of Node read TypeScript themselves if its types can be stripped. */
const nodeReadsTypeScript = Boolean((process.features as { readonly typescript?: unknown }).typescript);

const drawable = (name: string) => `class ${name} extends Workflow { static { this.step("one", () => {}); } }`;

test.each([
  ["TypeScript", "a.ts", `export ${drawable("A")}\nexport type Some = { a: number };`],
  ["a .mts file", "a.mts", `export ${drawable("A")}\nexport const n: number = 1;`],
  ["a .cts file", "a.cts", `export ${drawable("A")}\nexport const n: number = 1;`],
  ["a .mjs file", "a.mjs", `export ${drawable("A")}`],
  ["a .js file", "a.js", `export ${drawable("A")}`],
  ["a default export", "a.ts", `export default ${drawable("A")}`],
  ["a list by default", "a.ts", `${drawable("A")}\nexport default [A];`],
  ["what is exported twice, once,", "a.ts", `${drawable("A")}\nexport const all = [A];\nexport { A };`],
])("%s is loaded", async (_what, file, text) => {
  const folder = newFolder();
  folder.write(file, `import { Workflow } from "pawl";\n${text}`);
  expect(await namesIn(folder, file)).toEqual(["A"]);
});

test("a TypeScript file is treated as an ES module by its syntax, also in a CommonJS package", async () => {
  const folder = newFolder();
  folder.write("package.json", '{ "type": "commonjs" }');
  folder.write("a.ts", `import { Workflow } from "pawl";\nexport ${drawable("A")}`);
  folder.write("plain.cts", "const name: string = 'x';\nmodule.exports = { name };");
  expect(await namesIn(folder, "a.ts")).toEqual(["A"]);
  expect(await folder.error("graph", "plain.cts")).toContain("plain.cts exports no workflow");
});

test("imports may end in .js or have no extension where only a .ts file exists", async () => {
  const folder = newFolder();
  folder.write("names/one.ts", 'export const one: string = "One";');
  folder.write("names/two.mts", 'export const two: string = "Two";');
  folder.write("names/three/index.ts", 'export const three: string = "Three";');
  folder.write("names/four.js", 'export const four = "Four";');
  folder.write("names/four.ts", 'export const four: string = "the wrong one";');
  folder.write(
    "a.ts",
    `import { Workflow } from "pawl";
     import { one } from "./names/one.js";
     import { one as same } from "./names/one";
     import { two } from "./names/two.mjs";
     import { three } from "./names/three";
     import { four } from "./names/four.js";
     export class A extends Workflow { static { for (const name of [one, same + "2", two, three, four]) this.step(name, () => {}); } }`,
  );
  const [{ nodes }] = await folder.json("graph", "a.ts");
  expect(nodes.map(({ name }: { name: string }) => name)).toEqual(["One", "One2", "Two", "Three", "Four"]);
});

test("files import the program's own Pawl, also when another copy is installed", async () => {
  const folder = newFolder();
  // A class that was defined with another copy of Pawl would not be recognized.
  folder.write("node_modules/pawl/package.json", '{ "name": "pawl", "type": "module", "exports": "./index.js" }');
  folder.write("node_modules/pawl/index.js", "export class Workflow { static step() {} }");
  folder.write("a.ts", `import { Workflow } from "pawl";\nexport ${drawable("A")}`);
  expect(await namesIn(folder, "a.ts")).toEqual(["A"]);
});

test("pawl/testing and the stores are also the program's own", async () => {
  const folder = newFolder();
  folder.write(
    "a.ts",
    `import { Workflow } from "pawl";
     import { testPawl } from "pawl/testing";
     import { openSqlite } from "pawl/sqlite";
     export class A extends Workflow { static { this.step(typeof testPawl + typeof openSqlite, () => {}); } }`,
  );
  const [{ nodes }] = await folder.json("graph", "a.ts");
  expect(nodes[0].name).toBe("functionfunction");
});

test.each([
  ["missing.ts", null, "There is no file missing.ts."],
  [
    "a.ts",
    "export const a: number = 1;",
    /^a\.ts exports no workflow; export what workflow\(…\), graph\(…\), job\(…\) or schedule\(…\) returns/,
  ],
  [
    "a.ts",
    'import { schedule } from "pawl";\nexport const nightly = schedule("nightly", { workflow: "report", every: "1d" });',
    "a.ts exports schedules only; name the file that exports their workflows.",
  ],
  ["a.ts", "const one = 1;\nexport const a: number = ;", /^a\.ts cannot be loaded: a\.ts:2: \S/],
  ["a.mjs", "const one = 1;\nexport const a = ;", "a.mjs cannot be loaded: a.mjs:2: Unexpected token ';'"],
  [
    "a.ts",
    'import { x } from "./nowhere.js";\nexport const y = x;',
    /^a\.ts cannot be loaded: Cannot find module .*nowhere/,
  ],
  ["a.mjs", 'throw new Error("first\\nsecond");', "a.mjs cannot be loaded: first"],
  [
    "a.ts",
    'import { Workflow } from "pawl";\nexport class A extends Workflow { static { this.step("gone"); } }',
    /Step "gone" of workflow A has no function, and the class has no method of that name; it has no methods\./,
  ],
])("%s with %j is refused in one sentence", async (file, text, sentence) => {
  const folder = newFolder();
  if (text !== null) folder.write(file, text);
  const complaint = await folder.error("graph", file);
  if (typeof sentence === "string") expect(complaint).toBe(sentence);
  else expect(complaint).toMatch(sentence);
});

test("a syntax error is reported with its file and the message of the tool", async () => {
  const folder = newFolder();
  folder.write("steps/bad.ts", "const one = 1;\n\nexport const a: number = ;");
  folder.write("a.ts", 'import { a } from "./steps/bad.js";\nexport const b = a;');
  expect(await folder.error("graph", "a.ts")).toMatch(/^a\.ts cannot be loaded: steps\/bad\.ts:3: \S/);
  if (nodeReadsTypeScript) return;
  folder.write("node_modules/esbuild/package.json", '{ "name": "esbuild", "main": "index.js" }');
  folder.write(
    "node_modules/esbuild/index.js",
    `exports.transformSync = (_, { sourcefile }) => {
       throw new Error("Transform failed with 1 error:\\n" + sourcefile + ':3:25: ERROR: Unexpected ";"');
     };`,
  );
  const { stderr } = await folder.begin(["graph", "steps/bad.ts"]).exited;
  expect(stderr).toBe('steps/bad.ts cannot be loaded: steps/bad.ts:3: Unexpected ";"\n');
});

test("an error names the line of the TypeScript source", async () => {
  const folder = newFolder();
  folder.write(
    "a.ts",
    `import { workflow } from "pawl";

interface Gone { readonly once: string }
enum AlsoGone { One, Two }

export const bad = workflow("bad", async () => { throw new Error(\`no \${AlsoGone.Two}\`); });`,
  );
  if (nodeReadsTypeScript) {
    expect(await folder.error("worker", "a.ts")).toMatch(/enum is not supported in strip-only mode/);
    return;
  }
  await folder.begin(["worker", "a.ts"]).until("serves bad");
  const { stdout } = await folder.pawl("start", "bad", "--wait", "--json");
  const { error } = JSON.parse(stdout);
  expect(error.message).toBe("no 1");
  expect(error.stack).toMatch(/a\.ts:6:\d+/);
});

test("when Node cannot read TypeScript and no tool is installed, the error says what to install", async () => {
  const folder = newFolder();
  cpSync(join(root, "dist"), join(folder.path, "pawl/dist"), { recursive: true });
  cpSync(join(root, "package.json"), join(folder.path, "pawl/package.json"));
  folder.write("a.ts", `import { Workflow } from "pawl";\nexport ${drawable("A")}`);
  const alone = { program: join(folder.path, "pawl/dist/cli/main.js") };
  const { code, stdout, stderr } = await folder.pawlWith(alone, "graph", "a.ts");
  if (nodeReadsTypeScript) {
    expect(stdout).toContain('n1["one"]');
    return;
  }
  expect([code, stderr]).toEqual([
    1,
    `a.ts cannot be loaded: Node ${process.versions.node} cannot read TypeScript; use Node 22.18 or later, or run: npm install --save-dev esbuild\n`,
  ]);
});

test("a tool of the user's project is used, and a TypeScript package without a compiler API is skipped", async () => {
  const folder = newFolder();
  folder.write("node_modules/typescript/package.json", '{ "name": "typescript", "main": "index.js" }');
  folder.write("node_modules/typescript/index.js", 'exports.version = "7.0.0";');
  folder.write("a.ts", `import { Workflow } from "pawl";\nexport ${drawable("A")}`);
  expect(await namesInFresh(folder, "a.ts")).toEqual(["A"]);
  // The output of the fake tool is what is executed.
  folder.write("node_modules/esbuild/package.json", '{ "name": "esbuild", "main": "index.js" }');
  const other = `import { Workflow } from "pawl"; export ${drawable("MadeByTheTool")}`;
  folder.write("node_modules/esbuild/index.js", `exports.transformSync = () => ({ code: ${JSON.stringify(other)} });`);
  expect(await namesInFresh(folder, "a.ts")).toEqual([nodeReadsTypeScript ? "A" : "MadeByTheTool"]);
});
