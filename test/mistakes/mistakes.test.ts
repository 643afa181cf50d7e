/**
 * Deliberate mistakes in a strict TypeScript project that installs Pawl from its tarball: each is refused by the
 * compiler, or by one sentence that names the problem and the next move.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mistakes as classStyle } from "./class-style.js";
import { mistakes as client } from "./client.js";
import { mistakes as commandLine } from "./command-line.js";
import { mistakes as dynamicGraphs } from "./dynamic-graphs.js";
import { mistakes as functionStyle } from "./function-style.js";
import { mistakes as graphStyle } from "./graph-style.js";
import type { Mistake } from "./mistake.js";
import { type Answer, Project } from "./project.js";
import { mistakes as schedules } from "./schedules.js";
import { mistakes as testing } from "./testing.js";
import { mistakes as worker } from "./worker.js";

const styles: Readonly<Record<string, readonly Mistake[]>> = {
  "function style": functionStyle,
  "class style": classStyle,
  "graph style": graphStyle,
  "dynamic graphs": dynamicGraphs,
  client,
  worker,
  schedules,
  testing,
};

const nameOf = (style: string, index: number) => `${style.replace(" ", "-")}-${index + 1}`;
const all = Object.entries(styles).flatMap(([style, mistakes]) =>
  mistakes.map((mistake, index) => ({ name: nameOf(style, index), mistake })),
);

const project = new Project();
let complaints: ReadonlyMap<string, string>;
let answers: Readonly<Record<string, Answer>>;

beforeAll(async () => {
  await project.install();
  for (const { name, mistake } of all) project.add(name, mistake.code);
  complaints = await project.compile();
  answers = await project.answers(all.filter(({ name }) => !complaints.has(name)).map(({ name }) => name));
}, 300_000);
afterAll(() => project.remove());

test("there are many mistakes, and everything except the mistakes compiles, including the package's own types", () => {
  expect(all.length + commandLine.length).toBeGreaterThan(200);
  const made = new Set(all.map(({ name }) => name));
  expect([...complaints].filter(([file]) => !made.has(file))).toEqual([]);
});

describe.each(Object.entries(styles))("%s", (style, mistakes) => {
  test.each(mistakes.map((mistake, index) => ({ ...mistake, name: nameOf(style, index) })))(
    "$what",
    ({ name, compiler, sentence }) => {
      if (compiler !== undefined)
        return expect(withoutPlaces(complaints.get(name) ?? "It compiles.")).toContain(compiler);
      expect(complaints.get(name)).toBeUndefined();
      const said = withoutPlaces(answers[name]?.sentence ?? "Nothing was refused.");
      expect(said).toContain(sentence);
      expectOneSentence(said);
    },
  );
});

describe("command line", () => {
  test.each(commandLine)("$what", async ({ args, files = {}, sentence }) => {
    const { code, stderr } = await project.cli(args, files);
    expect(code).toBe(1);
    // Later versions of Node also report line and column of invalid JSON.
    const said = stderr.trim().replace(/ \(line \d+ column \d+\)/, "");
    expect(said).toBe(sentence);
    expectOneSentence(said);
  });
});

/** Replaces what differs between machines and runs. */
function withoutPlaces(text: string): string {
  return text
    .replace(/(?!0190b8a0)[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
    .replace(/Worker "[^"]*:\d+"/, 'Worker "<name>"')
    .replace(/import\("[^"]*shop"\)/, 'import("<project>/shop")');
}

/** The answer is short, on one line, and without a stack. */
function expectOneSentence(said: string): void {
  expect(said).not.toContain("\n");
  expect(said.length).toBeLessThan(400);
  expect(said).not.toMatch(/undefined is not|cannot read propert|is not a function|\[object /i);
}
