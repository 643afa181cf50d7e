import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  MissingJobError,
  NonDeterminismError,
  PauseError,
  PayloadTooLargeError,
  PermanentError,
  RunCanceledError,
  RunFailedError,
  SerializationError,
  StepNotDefinedError,
  TimeoutError,
  TransientError,
} from "../errors/errors.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";
import { type Failure, reviveFailure, toFailure } from "./error-record.js";

const store = (failure: Failure) => decode(encode(failure, { label: "a failure" })) as Failure;
const roundTrip = (thrown: unknown) => reviveFailure(store(toFailure(thrown)));
const bytes = (text: string | undefined) => Buffer.byteLength(text ?? "");

describe("toFailure", () => {
  test("keeps name, message, stack, code and cause", () => {
    const error = Object.assign(new RangeError("too far", { cause: new Error("why") }), { code: "E_FAR" });
    expect(toFailure(error)).toMatchObject({
      name: "RangeError",
      message: "too far",
      stack: error.stack,
      code: "E_FAR",
      cause: { name: "Error", message: "why" },
    });
  });

  test.each([
    [null, "null was thrown"],
    [undefined, "undefined was thrown"],
    ["boom", "boom"],
    [42, "42 was thrown"],
    [10n, "10 was thrown"],
    [{ message: "from a client", hint: 1 }, "from a client"],
    [{ a: new Date(0) }, "an object was thrown"],
    [["a"], "an object was thrown"],
  ])("keeps the value of a thrown non-error: %o", (thrown, message) => {
    expect(toFailure(thrown)).toEqual({ name: "NonError", message, value: thrown });
    expect("value" in toFailure(thrown)).toBe(true);
  });

  test.each([[() => 1], [Symbol("s")], [{ fn: () => 1 }], [new Map([[1, Promise.resolve()]])]])(
    "leaves out a value that cannot be stored: %o",
    (thrown) => {
      expect(Object.keys(toFailure(thrown))).toEqual(["name", "message"]);
    },
  );

  test("the kept value is a copy", () => {
    const thrown = { list: [1] };
    const failure = toFailure(thrown);
    thrown.list.push(2);
    expect(failure.value).toEqual({ list: [1] });
  });

  test("survives getters, proxies and toJSON that throw", () => {
    const throwing = new Proxy(
      {},
      {
        get: () => {
          throw new Error("get");
        },
        getPrototypeOf: () => {
          throw new Error("getPrototypeOf");
        },
      },
    );
    const { proxy: revoked, revoke } = Proxy.revocable({}, {});
    revoke();
    const error = new Error("m");
    for (const key of ["stack", "name", "message", "code", "cause", "errors"]) {
      Object.defineProperty(error, key, {
        get: () => {
          throw throwing;
        },
      });
    }
    for (const thrown of [throwing, revoked, error, { toJSON: () => throwing }, Object.create(null)]) {
      expect(store(toFailure(thrown)).name).toMatch(/^(Non)?Error$/);
    }
  });

  test("stops at a cause that is already recorded", () => {
    const a = new Error("a");
    const b = new Error("b", { cause: a });
    a.cause = b;
    const failure = toFailure(a);
    expect(failure.cause?.message).toBe("b");
    expect(failure.cause?.cause).toBeUndefined();
  });

  test("keeps the first five of a long chain of causes", () => {
    let error = new Error("0");
    for (let n = 1; n <= 10_000; n++) error = new Error(String(n), { cause: error });
    const messages: string[] = [];
    for (let failure: Failure | undefined = toFailure(error); failure; failure = failure.cause) {
      messages.push(failure.message);
    }
    expect(messages).toEqual(["10000", "9999", "9998", "9997", "9996", "9995"]);
  });

  test("cuts a huge message to 8 KiB and a huge stack to 16 KiB, never through a character", () => {
    const error = new Error("😀".repeat(1_000_000));
    error.stack = `é${"😀".repeat(1_000_000)}`;
    const { message, stack } = toFailure(error);
    expect(bytes(message)).toBeLessThanOrEqual(8 * 1024);
    expect(bytes(message)).toBeGreaterThan(8 * 1024 - 8);
    expect(bytes(stack)).toBeLessThanOrEqual(16 * 1024);
    expect(message).toMatch(/^(😀)+… \[cut\]$/u);
    expect(stack).toMatch(/^é(😀)+… \[cut\]$/u);
  });

  test("leaves a message of exactly 8 KiB alone", () => {
    expect(toFailure(new Error("x".repeat(8192))).message).toBe("x".repeat(8192));
    expect(toFailure(new Error("x".repeat(8193))).message).toMatch(/cut\]$/);
  });

  test("keeps ten errors of an AggregateError", () => {
    const error = new AggregateError(
      Array.from({ length: 20 }, (_, n) => (n === 1 ? "text" : new Error(String(n)))),
      "many",
    );
    const { errors } = toFailure(error);
    expect(errors).toHaveLength(10);
    expect(errors?.[0]).toMatchObject({ name: "Error", message: "0" });
    expect(errors?.[1]).toMatchObject({ name: "NonError", value: "text" });
  });

  describe("stays below 1 MiB", () => {
    const wide = (levels: number, leaf: () => unknown): Error =>
      Object.assign(
        new AggregateError(Array.from({ length: 10 }, () => (levels === 0 ? leaf() : wide(levels - 1, leaf)))),
        { name: "", message: "", stack: "" },
      );
    const escaped = (length: number) => "\u0001".repeat(length); // six bytes each, as JSON

    test.each<[string, unknown]>([
      ["with many texts just below their limits", wide(2, () => new Error(escaped(8000)))],
      ["with many texts beyond their limits", wide(2, () => new Error(escaped(80_000), { cause: escaped(80_000) }))],
      ["with many codes", wide(2, () => Object.assign(new Error(), { stack: "", code: escaped(190) }))],
      ["with many errors without a message", wide(4, () => Object.assign(new Error(), { name: "", stack: "" }))],
      ["with many values", wide(2, () => ({ list: new Array(10_000).fill(1) }))],
      ["with one huge value", { text: escaped(10_000_000) }],
    ])("%s", (_name, thrown) => {
      expect(() => store(toFailure(thrown))).not.toThrow();
    });
  });

  test("leaves out a deeply nested value, because the event around it needs some levels too", () => {
    let value: unknown = 1;
    for (let n = 0; n < 150; n++) value = [value];
    expect("value" in toFailure(value)).toBe(false);
  });

  test("accepts any value", () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
        (thrown) => {
          expect(roundTrip(thrown)).toBeInstanceOf(Error);
          expect(roundTrip(new Error("m", { cause: thrown })).message).toBe("m");
        },
      ),
    );
  });
});

describe("reviveFailure", () => {
  test("restores the thrown error", () => {
    const error = Object.assign(new TypeError("m", { cause: new Error("why") }), { code: 42 });
    const revived = roundTrip(error);
    expect(revived).toBeInstanceOf(TypeError);
    expect(revived).toMatchObject({ name: "TypeError", message: "m", code: 42, stack: error.stack });
    expect(revived.cause).toMatchObject({ message: "why" });
    expect(revived.cause).toBeInstanceOf(Error);
  });

  test("restores Pawl's own errors as instances of their classes, with their fields", () => {
    expect(roundTrip(new PermanentError("p"))).toBeInstanceOf(PermanentError);
    expect(roundTrip(new TimeoutError("t"))).toBeInstanceOf(TimeoutError);
    const transient = roundTrip(new TransientError("t", { retryAfter: { seconds: 5 } }));
    expect(transient).toBeInstanceOf(TransientError);
    expect(transient).toMatchObject({ message: "t", retryAfter: { seconds: 5 } });
    const pause = roundTrip(new PauseError("t", { resumeOn: "go", recheckAfter: "1h" }));
    expect(pause).toBeInstanceOf(PauseError);
    expect(pause).toMatchObject({ resumeOn: "go", recheckAfter: "1h" });
    const failed = roundTrip(new RunFailedError("r1", new RangeError("x")));
    expect(failed).toBeInstanceOf(RunFailedError);
    expect(failed).toMatchObject({ runId: "r1", message: expect.stringContaining("RangeError: x") });
    expect(failed.cause).toBeInstanceOf(RangeError);
    const canceled = roundTrip(new RunCanceledError("r1", "why not"));
    expect(canceled).toBeInstanceOf(RunCanceledError);
    expect(canceled).toMatchObject({ runId: "r1", reason: "why not" });
  });

  test("restores errors that stop a run as instances of their classes, with their fields and messages", () => {
    const errors = [
      new SerializationError("Cannot store it", { path: "$.a" }),
      new NonDeterminismError({ runId: "r1", steps: ["pay"], problem: "it is a sleep now" }),
      new StepNotDefinedError({ workflow: "order", step: "pay" }),
      new MissingJobError({ runId: "r1", node: "n", job: "Mail", frozenAt: 5 }),
      new PayloadTooLargeError({ what: "it", bytes: 2, limit: 1 }),
    ];
    for (const error of errors) {
      const revived = roundTrip(error);
      expect(revived).toBeInstanceOf(error.constructor);
      expect(revived.constructor.name).toBe(error.name);
      expect(revived.message).toBe(error.message);
      expect(JSON.parse(JSON.stringify(revived))).toEqual(JSON.parse(JSON.stringify(error)));
    }
    const { data: _, ...withoutFields } = toFailure(errors[0]);
    expect(reviveFailure(withoutFields)).toMatchObject({ name: "SerializationError", message: "Cannot store it" });
  });

  test("makes a thrown non-error the cause of an Error", () => {
    expect(roundTrip("boom")).toMatchObject({ name: "NonError", message: "boom", cause: "boom" });
    expect(roundTrip(new Error("m", { cause: { status: 503 } })).cause).toEqual({ status: 503 });
  });

  test("restores the errors of an AggregateError", () => {
    const revived = roundTrip(new AggregateError([new RangeError("a"), 5], "many"));
    expect(revived).toBeInstanceOf(AggregateError);
    expect((revived as AggregateError).errors).toEqual([new RangeError("a"), 5]);
  });

  test("restores an error of another realm", () => {
    const foreign: unknown = runInNewContext("new TypeError('elsewhere')");
    expect(foreign).not.toBeInstanceOf(Error);
    expect(roundTrip(foreign)).toMatchObject({ name: "TypeError", message: "elsewhere" });
  });

  test("makes an Error of a damaged failure", () => {
    expect(reviveFailure({} as Failure)).toBeInstanceOf(Error);
    expect(reviveFailure({ name: 5, message: null } as unknown as Failure)).toBeInstanceOf(Error);
  });
});
