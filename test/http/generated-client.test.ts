/** A client that is generated from the OpenAPI document: it compiles, and a program with it tells a whole story. */
import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { serve } from "./served-pawl.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const here = fileURLToPath(new URL("./generated-client/", import.meta.url));
const run = promisify(execFile);

const order = workflow("order", async (ctx, { sku }: { sku: string }) => {
  const approval = await ctx.waitForSignal<{ by: string }>("approved");
  return `${sku}, approved by ${approval?.by}`;
});

/** A strict project with the story, the generated types and openapi-fetch, and nothing else. */
async function project(document: unknown): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-client-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  copyFileSync(join(here, "story.ts"), join(folder, "story.ts"));
  const write = (name: string, json: unknown) => writeFileSync(join(folder, name), JSON.stringify(json));
  write("package.json", { name: "client", private: true, type: "module" });
  write("tsconfig.json", {
    compilerOptions: {
      ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, noEmitOnError: true },
      ...{ target: "es2022", module: "nodenext", types: ["node"], rootDir: ".", outDir: "out" },
    },
    include: ["*.ts"],
  });
  write("openapi.json", document);
  await run(process.execPath, [join(here, "generate.mjs"), join(folder, "openapi.json"), join(folder, "api.d.ts")]);
  return folder;
}

/** What the compiler says; "" if it has nothing to say. */
const compile = (folder: string) =>
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json", "--pretty", "false"], {
    cwd: folder,
  }).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );

test("a program with a generated client compiles, and starts, signals, awaits, lists, pauses, resumes and cancels", async () => {
  const { url, get } = await serve({ registered: [order] });
  const folder = await project((await get("/api/openapi.json")).json);
  expect(await compile(folder)).toBe("");
  const { stdout } = await run(process.execPath, [join(folder, "out/story.js"), url]);
  expect(JSON.parse(stdout)).toEqual({
    started: [201, true, 200, false],
    sameRun: true,
    reused: "KEY_REUSED",
    waitingFor: ["signal approved"],
    pending: [202, "waiting"],
    paused: true,
    late: [409, "RUN_CHANGED", "paused", ["command.accepted ada", "run.paused –"]],
    listed: [[true, "Stop.", true]],
    resumed: true,
    notPaused: [409, "INVALID_STATE"],
    signalled: true,
    result: "A-1, approved by finance",
    history: [
      ...["run.started", "wait.started", "command.accepted", "run.paused", "command.accepted", "run.resumed"],
      ...["signal.received", "wait.completed", "run.completed"],
    ],
    canceled: true,
    ended: expect.objectContaining({ name: "RunCanceledError", message: "Changed my mind." }),
    unknown: "RUN_NOT_FOUND",
  });
});

test("the compiler refuses what the API would refuse", async () => {
  const { get } = await serve();
  const folder = await project((await get("/api/openapi.json")).json);
  const story = readFileSync(join(folder, "story.ts"), "utf8");
  const changes: readonly (readonly [from: string, to: string, error: RegExp])[] = [
    ['"/api/v1/runs/{run}/pause"', '"/api/v1/runs/{run}/pauze"', /pauze/],
    ['status: "paused", explain', 'status: "halted", explain', /"halted"/],
    ["{ path: { workflow:", "{ path: { workflows:", /workflows/],
    ['body: { by: "ada" }', "body: { by: 42 }", /number.*string/],
    ["limit: 1000", 'limit: "many"', /string.*number/],
    ["run.pauseReason", "run.pausedBecause", /pausedBecause/],
  ];
  // A file for each change, in one program.
  for (const [index, [from, to]] of changes.entries()) {
    expect(story.split(from).length).toBeGreaterThan(1);
    writeFileSync(join(folder, `changed-${index}.ts`), story.replace(from, to));
  }
  const complaints = (await compile(folder)).split(/^(?=\S+\(\d+,\d+\): error)/m);
  for (const [index, [, , error]] of changes.entries())
    expect(complaints.filter((complaint) => complaint.startsWith(`changed-${index}.ts`)).join("")).toMatch(error);
  expect(complaints.filter((complaint) => complaint.startsWith("story.ts"))).toEqual([]);
});
