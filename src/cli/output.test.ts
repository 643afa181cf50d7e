import { expect, test } from "vitest";
import { Output } from "./output.js";

function outputOn(stream: { readonly isTTY?: boolean; readonly columns?: number }, noColor?: string, json = false) {
  const written: string[] = [];
  const stdout = { ...stream, write: (text: string) => written.push(text) };
  return { written, out: new Output({ stdout, stderr: stdout, json, debug: false, noColor }) };
}

test("colours are for terminals, unless NO_COLOR is set", () => {
  expect(outputOn({ isTTY: true }).out.paint("red", "x")).toBe("\u001b[31mx\u001b[0m");
  expect(outputOn({ isTTY: true }, "").out.paint("red", "x")).toBe("\u001b[31mx\u001b[0m");
  expect(outputOn({ isTTY: true }, "1").out.paint("red", "x")).toBe("x");
  expect(outputOn({ isTTY: true }, undefined, true).out.paint("red", "x")).toBe("x");
  expect(outputOn({}).out.paint("red", "x")).toBe("x");
});

test("a terminal has its width, everything else 80 columns", () => {
  expect(outputOn({ isTTY: true, columns: 132 }).out.columns).toBe(132);
  expect(outputOn({ isTTY: true, columns: 0 }).out.columns).toBe(80);
  expect(outputOn({ columns: 132 }).out.columns).toBe(80);
});

test("programs get a document, or a line for each event; people get text", () => {
  const forPrograms = outputOn({}, undefined, true);
  forPrograms.out.print({ a: 1 }, () => "never");
  forPrograms.out.event({ b: new Date(0) }, () => "never");
  expect(forPrograms.written).toEqual(['{\n  "a": 1\n}\n', '{"b":"1970-01-01T00:00:00.000Z"}\n']);
  const forPeople = outputOn({});
  forPeople.out.print({}, () => ["one", "two"]);
  forPeople.out.event({}, () => "three");
  expect(forPeople.written).toEqual(["one\n", "two\n", "three\n"]);
});
