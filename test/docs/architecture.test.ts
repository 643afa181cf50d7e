/** The files that ARCHITECTURE.md names exist. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");

const rooms = /^(core|define|client|worker|store|runtime|concurrency|telemetry|testing|cli)\//;
const filesIn = (part: string) =>
  [...part.matchAll(/`([\w./-]+\.ts)`/g)].map(([, file]) => file as string).filter((file) => rooms.test(file));

test("every file that is named with its folder exists", () => {
  const missing = filesIn(text).filter((file) => !existsSync(join(root, "src", file)));
  expect(missing).toEqual([]);
});

const walks = text.split(/^## /m).filter((part) => part.startsWith("Walk "));

test("there are six walks through the code", () => {
  expect(walks).toHaveLength(6);
});

describe.each(walks.map((walk) => ({ title: walk.slice(0, walk.indexOf("\n")), walk })))("$title", ({ walk }) => {
  test("names at most 40 files, each once", () => {
    const files = filesIn(walk);
    expect(files.length).toBeLessThanOrEqual(40);
    expect(files.filter((file, index) => files.indexOf(file) !== index)).toEqual([]);
  });
});
