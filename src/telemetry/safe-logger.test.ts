import { expect, onTestFinished, test, vi } from "vitest";
import { boundLogger, isDebugEnabled, logWithFields, safeLogger } from "./safe-logger.js";

/** Takes arguments as pino does: an object first, or a text whose further arguments are dropped unless it has placeholders. */
function likePino(lines: object[] = [], bindings: object = {}, level = "debug") {
  const write =
    (name: string) =>
    (...[first, ...rest]: unknown[]) => {
      if (first instanceof Error) return void lines.push({ level: name, ...bindings, err: first, msg: first.message });
      if (typeof first === "object") return void lines.push({ level: name, ...bindings, ...first, msg: rest[0] });
      lines.push({ level: name, ...bindings, msg: String(first).replace(/%s/g, () => String(rest.shift())) });
    };
  return {
    lines,
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    bindings: () => bindings,
    isLevelEnabled: (name: string) => name !== "debug" || level === "debug",
    child: (more: object) => likePino(lines, { ...bindings, ...more }, level),
  };
}

const error = new Error("no stock");

test("pino gets an error that is passed after the message", () => {
  const pino = likePino();
  const log = safeLogger(pino);
  log.warn("Could not ship", error);
  log.warn("Could not ship", error, { sku: "A-1" });
  log.info({ sku: "A-1" }, "shipped");
  log.info("shipped %s", "A-1");
  log.info("shipped");
  log.error(error);
  expect(pino.lines).toEqual([
    { level: "warn", err: error, msg: "Could not ship" },
    { level: "warn", err: error, sku: "A-1", msg: "Could not ship" },
    { level: "info", sku: "A-1", msg: "shipped" },
    { level: "info", msg: "shipped A-1" },
    { level: "info", msg: "shipped" },
    { level: "error", err: error, msg: "no stock" },
  ]);
});

test("console gets the arguments in the order in which they were passed", () => {
  const lines: unknown[][] = [];
  const write = (...args: unknown[]) => void lines.push(args);
  const log = safeLogger({ debug: write, info: write, warn: write, error: write });
  log.warn("Could not ship", error);
  logWithFields(log, "warn", { runId: "r1" }, "Run r1 failed", error);
  logWithFields(log, "warn", { runId: "r1" }, "Run r1 waits");
  expect(lines).toEqual([["Could not ship", error], ["Run r1 failed", error], ["Run r1 waits"]]);
  expect(boundLogger(log, { runId: "r1" })).toBe(log);
});

test("a logger with children is bound to fields; a single line about a run has the same fields", () => {
  const pino = likePino();
  const log = safeLogger(pino);
  const stepLog = boundLogger(boundLogger(log, { runId: "r1", workflow: "order" }), { step: "pay", attempt: 2 });
  stepLog.warn("declined", error);
  logWithFields(log, "warn", { runId: "r1", workflow: "order" }, "Run r1 failed", error);
  expect(pino.lines).toEqual([
    { level: "warn", runId: "r1", workflow: "order", step: "pay", attempt: 2, err: error, msg: "declined" },
    { level: "warn", runId: "r1", workflow: "order", err: error, msg: "Run r1 failed" },
  ]);
});

test("a line has each field once, also when its logger is bound to the field, and the line's own value wins", () => {
  const written: string[][] = [];
  /** pino writes the fields of a child, then those of the line. */
  const child = (bound: object): object => {
    const write = (fields: object) =>
      void written.push([bound, fields].flatMap((part) => Object.entries(part).map(String)));
    const levels = { debug: write, info: write, warn: write, error: write };
    return { ...levels, bindings: () => bound, child: (more: object) => child({ ...bound, ...more }) };
  };
  const runLog = boundLogger(safeLogger(child({ service: "shop" }) as never), { runId: "r1", workflow: "order" });
  logWithFields(runLog, "warn", { runId: "r1", workflow: "order" }, "Run r1 failed");
  logWithFields(runLog, "debug", { runId: "r2", workflow: "part" }, "Run r2, its child, is pending");
  logWithFields(boundLogger(runLog, { step: "pay" }), "warn", { runId: "r1" }, "Run r1 is slow");
  expect(written).toEqual([
    ["service,shop", "runId,r1", "workflow,order"],
    ["service,shop", "runId,r2", "workflow,part"],
    ["service,shop", "runId,r1", "workflow,order", "step,pay"],
  ]);
});

test("winston's children get the message first", () => {
  const lines: unknown[][] = [];
  const write = (...args: unknown[]) => void lines.push(args);
  const plain = { debug: write, info: write, warn: write, error: write };
  const log = safeLogger({ ...plain, child: (fields: object) => ({ ...plain, fields }) } as never);
  boundLogger(log, { runId: "r1" }).warn("declined", error);
  expect(lines).toEqual([["declined", error]]);
});

test("a logger whose children fail is used without them, and the failure is printed once for all runs", () => {
  const printed = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => printed.mockRestore());
  const broken = () => {
    throw new Error("no disk");
  };
  const log = safeLogger({ ...likePino(), child: broken, warn: broken } as never);
  expect(boundLogger(log, { runId: "r1" })).toBe(log);
  expect(boundLogger(log, { runId: "r2" })).toBe(log);
  log.warn("still here");
  const children = safeLogger({ ...likePino(), warn: broken, child: () => ({ ...likePino(), warn: broken }) } as never);
  boundLogger(children, { runId: "r1" }).warn("one");
  boundLogger(children, { runId: "r2" }).warn("two");
  expect(printed).toHaveBeenCalledTimes(2);
});

test("the level debug is off if the logger says so", () => {
  expect(isDebugEnabled(safeLogger(likePino([], {}, "info")))).toBe(false);
  expect(isDebugEnabled(safeLogger(likePino([], {}, "debug")))).toBe(true);
  expect(isDebugEnabled(safeLogger(console))).toBe(true);
});
