import { expect, test } from "vitest";
import { Output } from "./output.js";

function outputOn(stream: { readonly isTTY?: boolean; readonly columns?: number }, noColor?: string, json = false) {
  const written: string[] = [];
  const stdout = { ...stream, write: (text: string) => written.push(text) };
  return { written, out: new Output({ stdout, stderr: stdout, json, debug: false, noColor }) };
}

test("only terminals get colours, unless NO_COLOR is set", () => {
  expect(outputOn({ isTTY: true }).out.paint("red", "x")).toBe("\u001b[31mx\u001b[0m");
  expect(outputOn({ isTTY: true }, "").out.paint("red", "x")).toBe("\u001b[31mx\u001b[0m");
  expect(outputOn({ isTTY: true }, "1").out.paint("red", "x")).toBe("x");
  expect(outputOn({ isTTY: true }, undefined, true).out.paint("red", "x")).toBe("x");
  expect(outputOn({}).out.paint("red", "x")).toBe("x");
});

test("a terminal has its own width, other streams have 80 columns", () => {
  expect(outputOn({ isTTY: true, columns: 132 }).out.columns).toBe(132);
  expect(outputOn({ isTTY: true, columns: 0 }).out.columns).toBe(80);
  expect(outputOn({ columns: 132 }).out.columns).toBe(80);
});

test("with --json a value is a document and an event is a line; without it both are text", () => {
  const asJson = outputOn({}, undefined, true);
  asJson.out.print({ a: 1 }, () => "never");
  asJson.out.event({ b: new Date(0) }, () => "never");
  expect(asJson.written).toEqual(['{\n  "a": 1\n}\n', '{"b":"1970-01-01T00:00:00.000Z"}\n']);
  const asText = outputOn({});
  asText.out.print({}, () => ["one", "two"]);
  asText.out.event({}, () => "three");
  expect(asText.written).toEqual(["one\n", "two\n", "three\n"]);
});
