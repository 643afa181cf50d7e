import { expect, test } from "vitest";
import { LiveLine } from "./live-line.js";

/** The lines that a terminal shows in the end: a carriage return goes back, `ESC [ K` clears the rest of the line. */
function visibleLines(written: readonly string[]): string[] {
  return written
    .join("")
    .split("\n")
    .map((line) => line.split("\r\u001b[K").at(-1) as string);
}

function terminal(columns: number) {
  const written: string[] = [];
  return { written, stream: { write: (text: string) => written.push(text), isTTY: true, columns } };
}

test("the line is redrawn in place, and other lines are printed above it", () => {
  const { written, stream } = terminal(40);
  const line = new LiveLine(stream);
  line.set("1 done");
  line.set("2 done");
  line.writeAbove(() => stream.write("a warning\n"));
  line.set("3 done");
  expect(visibleLines(written)).toEqual(["a warning", "3 done"]);
  line.end();
  line.writeAbove(() => stream.write("the end\n"));
  expect(visibleLines(written)).toEqual(["a warning", "3 done", "the end", ""]);
});

test("the line never wraps", () => {
  const { written, stream } = terminal(10);
  new LiveLine(stream).set("0123456789abc");
  expect(visibleLines(written)).toEqual(["01234567…"]);
});
