import { describe, expect, test } from "vitest";
import { reviveFailure, toFailure } from "../encoding/error-record.js";
import * as errors from "./errors.js";
import {
  AlreadyActiveError,
  CursorTooLargeError,
  DamagedDataError,
  ExecutionAbortedError,
  FencedError,
  GraphError,
  InvalidInputError,
  InvalidStateError,
  LimitCycleError,
  LimitFullError,
  MigrationError,
  MissingJobError,
  NonDeterminismError,
  PauseError,
  PawlError,
  PayloadTooLargeError,
  PermanentError,
  RunCanceledError,
  RunChangedError,
  RunFailedError,
  RunNotFoundError,
  ScheduleNotFoundError,
  SerializationError,
  StepNotDefinedError,
  StoreError,
  TimeoutError,
  TransactionError,
  TransientError,
  WorkflowNotFoundError,
} from "./errors.js";
import { rebuildError } from "./rebuild-error.js";

const cause = new Error("why");

/** An instance of each error class, with its code and a pattern for its message. */
const ONE_OF_EACH: ReadonlyArray<[PawlError, string, RegExp]> = [
  [new WorkflowNotFoundError("zip"), "WORKFLOW_NOT_FOUND", /"zip" is not registered; start a worker/],
  [
    new RunNotFoundError("0190b8a0-0000-7000-8000-000000000000"),
    "RUN_NOT_FOUND",
    /^Run 0190b8a0-0000-7000-8000-000000000000 does not exist; it may have been pruned\.$/,
  ],
  [
    new ScheduleNotFoundError("nightly"),
    "SCHEDULE_NOT_FOUND",
    /^Schedule "nightly" does not exist; put it with schedules\.put\(\), or start a worker that declares it\.$/,
  ],
  [
    new AlreadyActiveError({ workflow: "w", hero: { type: "User", id: "42" }, runId: "r1" }),
    "ALREADY_ACTIVE",
    /User 42 already has an active run of workflow "w": r1.*allowMultiple/,
  ],
  [InvalidStateError.forRun("r1", "completed", "paused"), "INVALID_STATE", /r1 is completed, so it cannot be paused/],
  [
    new RunChangedError({ runId: "r1", lastEvent: 9, expectedLastEvent: 7 }),
    "RUN_CHANGED",
    /Run r1 has changed: its log ends with event 9, not with event 7/,
  ],
  [new InvalidInputError("The input is not valid"), "INVALID_INPUT", /^The input is not valid$/],
  [new StepNotDefinedError({ workflow: "w", step: "s" }), "STEP_NOT_DEFINED", /"w" has no step "s".*resumeAt/],
  [
    new MissingJobError({ runId: "r1", node: "n", job: "J", frozenAt: 0 }),
    "MISSING_JOB",
    /Node "n" of run r1 needs the job "J".*frozen at 1970-01-01T00:00:00.000Z.*importDag/,
  ],
  [new GraphError("a → b → a is a cycle", { nodes: ["a", "b"] }), "GRAPH_ERROR", /cycle/],
  [new CursorTooLargeError({ step: "s", bytes: 3, limit: 2 }), "CURSOR_TOO_LARGE", /"s" is 3 bytes; the limit is 2/],
  [new PayloadTooLargeError({ what: "x", bytes: 3, limit: 2 }), "PAYLOAD_TOO_LARGE", /store x: it is 3 bytes.* 2/],
  [new SerializationError("no", { path: "$.a", cause }), "SERIALIZATION_ERROR", /no/],
  [new RunFailedError("r1", cause), "RUN_FAILED", /Run r1 failed with Error: why/],
  [new RunCanceledError("r1", "changed my mind"), "RUN_CANCELED", /Run r1 was canceled: changed my mind/],
  [new LimitCycleError("cycle", { limit: "api", key: "a", chain: ["r1 waits"] }), "LIMIT_CYCLE", /cycle/],
  [new LimitFullError("full", { limit: "api", key: "a" }), "LIMIT_FULL", /full/],
  [new TimeoutError("late"), "TIMEOUT", /late/],
  [new ExecutionAbortedError("The worker stops."), "EXECUTION_ABORTED", /stops/],
  [
    new NonDeterminismError({ runId: "r1", steps: ["s"], problem: "step s is a sleep now" }),
    "NON_DETERMINISM",
    /Run r1 cannot be replayed: step s is a sleep now.*resume\(\).*force/,
  ],
  [
    new DamagedDataError({ runId: "r1", column: "input", problem: "not JSON." }, { cause }),
    "DAMAGED_DATA",
    /^Run r1 cannot be read: its input is damaged \(not JSON\)\.$/,
  ],
  [new StoreError("gone", { transient: true, cause }), "STORE_ERROR", /gone/],
  [new TransactionError("over"), "TRANSACTION_ERROR", /over/],
  [new FencedError("w1", 3), "FENCED", /w1 lost its lease \(epoch 3\)/],
  [new MigrationError("version 9 is newer", { cause }), "MIGRATION_ERROR", /version 9/],
  [new PermanentError("no", { cause }), "PERMANENT_ERROR", /no/],
  [new TransientError("busy", { retryAfter: "30s", cause }), "TRANSIENT_ERROR", /busy/],
  [new PauseError("wait", { resumeOn: "ok", recheckAfter: "1h", cause }), "PAUSE_ERROR", /wait/],
];

describe("every error", () => {
  test.each(ONE_OF_EACH)("%s has its code, its name and its message", (error, code, message) => {
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    expect(error).toBeInstanceOf(PawlError);
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe(error.constructor.name);
    expect(error.stack).toContain(`${error.name}: `);
    expect(Object.keys(error)).not.toContain("name");
  });

  test("is in the list above, and has a code of its own", () => {
    const classes = Object.values(errors).filter(
      (exported) => typeof exported === "function" && exported.prototype instanceof PawlError,
    );
    expect(ONE_OF_EACH.map(([error]) => error.constructor.name).sort()).toEqual(classes.map(({ name }) => name).sort());
    expect(new Set(ONE_OF_EACH.map(([, code]) => code)).size).toBe(ONE_OF_EACH.length);
  });

  test("carries its facts as fields", () => {
    const hero = { type: "User", id: "42" };
    expect(new AlreadyActiveError({ workflow: "w", hero, runId: "r1" })).toMatchObject({
      workflow: "w",
      hero,
      runId: "r1",
    });
    expect(InvalidStateError.forRun("r1", "failed", "resumed")).toMatchObject({ runId: "r1", status: "failed" });
    expect(new PayloadTooLargeError({ what: "x", bytes: 3, limit: 2 })).toMatchObject({
      what: "x",
      bytes: 3,
      limit: 2,
    });
    expect(new NonDeterminismError({ runId: "r", steps: ["a"], problem: "p" })).toMatchObject({
      runId: "r",
      steps: ["a"],
    });
    expect(new RunFailedError("r1", cause)).toMatchObject({ runId: "r1", cause });
    expect(new RunCanceledError("r1")).toMatchObject({ runId: "r1", reason: undefined });
    expect(new TransientError("x", { retryAfter: "30s", cause })).toMatchObject({ retryAfter: "30s", cause });
    expect(new PauseError("x", { resumeOn: "s", recheckAfter: 5 })).toMatchObject({ resumeOn: "s", recheckAfter: 5 });
  });

  test("has no cause when none was given", () => {
    expect("cause" in new TransientError("x")).toBe(false);
    expect("cause" in new PermanentError("x")).toBe(false);
    expect("cause" in new SerializationError("x", { path: "$", cause: undefined })).toBe(false);
  });
});

describe("InvalidInputError", () => {
  test("lists the schema's issues with their paths", () => {
    const issues = [
      { message: "Expected string", path: ["items", 0, { key: "name" }] },
      { message: "Required", path: [] },
      { message: "no symbols", path: [Symbol("s")] },
    ];
    const error = new InvalidInputError("The input is not valid", { issues });
    expect(error.message).toBe(
      "The input is not valid: items.0.name: Expected string; Required; Symbol(s): no symbols",
    );
    expect(error.issues).toBe(issues);
  });

  test("lists only the first five of a thousand issues", () => {
    const issues = Array.from({ length: 1000 }, () => ({ message: "bad" }));
    expect(new InvalidInputError("x", { issues }).message).toBe("x: bad; bad; bad; bad; bad; and 995 more");
  });
});

describe("rebuildError", () => {
  test("restores listed classes, and makes an Error of any other", () => {
    expect(rebuildError({ name: "TypeError", message: "m" })).toBeInstanceOf(TypeError);
    const foreign = rebuildError({ name: "PrismaError", message: "m", code: "P2002", stack: "at x" });
    expect(Object.getPrototypeOf(foreign)).toBe(Error.prototype);
    expect(foreign).toMatchObject({ name: "PrismaError", message: "m", code: "P2002", stack: "at x" });
  });

  test.each(["__proto__", "constructor", "prototype", "toString"])(
    "accepts %s as an error name like any other",
    (name) => {
      const error = rebuildError({ name, message: "m" });
      expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
      expect(error.name).toBe(name);
      expect(new Error().name).toBe("Error");
    },
  );

  test("restores a subclass of PermanentError as a PermanentError with its own name", () => {
    const error = rebuildError({ name: "CardDeclined", message: "m", code: "PERMANENT_ERROR" });
    expect(error).toBeInstanceOf(PermanentError);
    expect(error.name).toBe("CardDeclined");
  });

  test("restores a TimeoutError by code and name, because other libraries use the code TIMEOUT too", () => {
    expect(rebuildError({ name: "GrpcError", message: "m", code: "TIMEOUT" })).not.toBeInstanceOf(PawlError);
    expect(rebuildError({ name: "TimeoutError", message: "m", code: "TIMEOUT" })).toBeInstanceOf(TimeoutError);
  });

  test("keeps the recorded message, also where the constructor of the class would word it differently", () => {
    const parts = { name: "RunFailedError", message: "as it was", code: "RUN_FAILED", data: { runId: "r1" } };
    expect(rebuildError(parts)).toMatchObject({ message: "as it was", runId: "r1" });
    expect(rebuildError(parts)).toBeInstanceOf(RunFailedError);
  });

  test("does not make name, message and stack enumerable", () => {
    const error = rebuildError({ name: "N", message: "m", stack: "s", code: 5, cause: 1 });
    expect(Object.keys(error)).toEqual(["code"]);
  });
});

test("a RunNotFoundError says that a text is not a run id, instead of that the run may have been pruned", () => {
  expect(new RunNotFoundError("order-42").message).toBe(
    "Run order-42 does not exist: this is not a run id as start() and runs() return it. To find a run by its idempotency key, call find(workflow, { idempotencyKey }).",
  );
});

describe("as JSON", () => {
  const asJson = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;

  test("an error of Pawl has its name, message, code, fields and cause", () => {
    const error = new RunFailedError("r1", new TypeError("x is undefined"));
    expect(asJson({ error })).toEqual({
      error: {
        name: "RunFailedError",
        message: error.message,
        code: "RUN_FAILED",
        runId: "r1",
        cause: { name: "TypeError", message: "x is undefined" },
      },
    });
  });

  test("a rebuilt error has them too, and so have its causes", () => {
    const cause = Object.assign(new Error("no route"), { code: "ECONNREFUSED" });
    const thrown = new AggregateError([new RangeError("5")], "all failed", { cause });
    expect(asJson(reviveFailure(toFailure(thrown)))).toEqual({
      name: "AggregateError",
      message: "all failed",
      errors: [{ name: "RangeError", message: "5" }],
      cause: { name: "Error", message: "no route", code: "ECONNREFUSED" },
    });
  });

  test("an error that is its own cause does not recurse without end", () => {
    const error = new PermanentError("round");
    error.cause = error;
    expect(JSON.stringify(error).match(/round/g)?.length).toBeLessThan(10);
  });
});
