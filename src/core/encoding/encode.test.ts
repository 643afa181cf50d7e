import { isDeepStrictEqual } from "node:util";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sized } from "../../../test/support/effort.js";
import {
  PauseError,
  PayloadTooLargeError,
  PermanentError,
  SerializationError,
  TransientError,
} from "../errors/errors.js";
import { decode } from "./decode.js";
import { type EncodeOptions, encode } from "./encode.js";

const text = (value: unknown, options: Partial<EncodeOptions> = {}) =>
  encode(value, { label: "the value", ...options });
const roundTrip = (value: unknown) => decode(text(value));

function nested(levels: number, wrap: (inner: unknown) => unknown = (inner) => [inner]): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = wrap(value);
  return value;
}

function refusal(act: () => unknown): SerializationError {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(SerializationError);
    return error as SerializationError;
  }
  return expect.unreachable("The value was not refused.");
}

describe("plain JSON", () => {
  test.each([
    [null],
    [true],
    [0],
    [-1.5e300],
    [""],
    ["é😀\u2028"],
    [[]],
    [{}],
    [{ a: 1, b: "x", c: [null, { d: false }] }],
    ["$pawl"],
    [["$pawl", '"$pawl":']],
    [{ v: 1, constructor: 2, toJSON: 3, hasOwnProperty: 4 }],
    [Object.assign(Object.create(null), { a: 1 })],
  ])("%j is its own encoding", (value) => {
    expect(text(value)).toBe(JSON.stringify(value));
    expect(roundTrip(value)).toEqual(value);
  });

  test("any JSON value encodes to exactly JSON.stringify and comes back", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(
          !JSON.stringify(value).includes('"$pawl":') && isDeepStrictEqual(JSON.parse(JSON.stringify(value)), value),
        );
        expect(text(value)).toBe(JSON.stringify(value));
        expect(isDeepStrictEqual(roundTrip(value), value)).toBe(true);
      }),
    );
  });
});

describe("values that JSON cannot express are restored as they were", () => {
  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["undefined in places", { a: undefined, b: [undefined, 1], c: { d: undefined } }],
    ["NaN", Number.NaN],
    ["Infinity", [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
    ["-0", [-0, 0, { z: -0 }]],
    ["bigint", [0n, -1n, 123456789012345678901234567890n]],
    ["Date", [new Date(0), new Date(8.64e15), new Date(-8.64e15)]],
    [
      "Map",
      new Map<unknown, unknown>([
        ["a", 1],
        [{ k: 1 }, new Map([[undefined, Number.NaN]])],
        ["__proto__", 2],
      ]),
    ],
    ["Set", new Set([1, "a", new Date(5), new Set([2n])])],
    ["RegExp", [/a"b\/c/giu, /(?:)/]],
    ["URL", new URL("https://example.com/a?b=c#d")],
    ["Uint8Array", new Uint8Array([0, 127, 255])],
    ["empty bytes", new Uint8Array()],
    ["a view into a larger buffer", new Uint16Array(new Uint16Array([1, 2, 3, 4]).buffer, 2, 2)],
    ["Float64Array", new Float64Array([1.5, -0, Number.NaN])],
    ["BigInt64Array", new BigInt64Array([-5n, 5n])],
    [
      "other typed arrays",
      [new Int8Array([-1]), new Uint8ClampedArray([300]), new Uint32Array([7]), new Int16Array([-3])],
    ],
    ["more typed arrays", [new Int32Array([-7]), new Float32Array([0.5]), new BigUint64Array([9n])]],
    ["ArrayBuffer", new Uint8Array([1, 2, 3]).buffer],
    ["DataView", new DataView(new Uint8Array([1, 2, 3]).buffer, 1)],
    ["lone surrogates", ["\ud800", { "\udfff": "a\udc00b" }]],
    ["NUL", ["a\u0000b", { "\u0000": 1 }]],
    ["a key $pawl", { $pawl: 1 }],
    ["what looks like a tag", { $pawl: "Date", v: "2020-01-01T00:00:00.000Z" }],
    ["tags within tags", { $pawl: { $pawl: { $pawl: undefined }, v: [{ $pawl: "Object", v: {} }] } }],
    ["toJSON as data", { toJSON: 5, d: new Date(1) }],
  ])("%s", (_name, value) => {
    const back = roundTrip(value);
    if (value instanceof DataView) return expect(Buffer.from((back as DataView).buffer)).toEqual(Buffer.from([2, 3]));
    expect(back).toEqual(value);
    return expect(isDeepStrictEqual(back, value)).toBe(true);
  });

  test("Buffer stays a Buffer and Uint8Array a Uint8Array", () => {
    const back = roundTrip([Buffer.from("hé"), new Uint8Array([1])]) as [Buffer, Uint8Array];
    expect(Buffer.isBuffer(back[0])).toBe(true);
    expect(back[0].toString()).toBe("hé");
    expect(Buffer.isBuffer(back[1])).toBe(false);
    expect(back[1].buffer.byteLength).toBe(1);
  });

  test("an invalid Date stays one", () => {
    expect((roundTrip(new Date(Number.NaN)) as Date).getTime()).toBeNaN();
  });

  test("holes of an array become undefined", () => {
    // biome-ignore lint/suspicious/noSparseArray: the test is about holes
    expect(roundTrip([1, , 3])).toStrictEqual([1, undefined, 3]);
  });

  test("properties that are undefined are still there", () => {
    expect(Object.keys(roundTrip({ a: undefined }) as object)).toEqual(["a"]);
  });

  test("boxed values become primitive values", () => {
    expect(roundTrip([Object(1), Object("x"), Object(true), Object(2n), Object(-0)])).toEqual([1, "x", true, 2n, -0]);
  });

  test("built-in objects of another realm are restored as those of this realm", () => {
    const foreign = runInNewContext("({ at: new Date(7), m: new Map([[1, 2]]), u: new Uint8Array([3]), a: [1] })");
    const back = roundTrip(foreign);
    expect(back).toEqual({ at: new Date(7), m: new Map([[1, 2]]), u: new Uint8Array([3]), a: [1] });
    expect((back as { at: unknown }).at).toBeInstanceOf(Date);
  });

  test("an object that occurs twice is no cycle, and is restored as two objects", () => {
    const shared = { at: new Date(1) };
    expect(roundTrip({ a: shared, b: [shared, shared] })).toEqual({ a: shared, b: [shared, shared] });
    const plain = { x: 1 };
    expect(text([plain, plain])).toBe('[{"x":1},{"x":1}]');
  });

  test("symbol keys are ignored", () => {
    expect(text({ [Symbol("s")]: 1, a: 2 })).toBe('{"a":2}');
  });

  test("any combination of these values is restored as it was", () => {
    const anything = fc.anything({
      key: fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("$pawl", "v", "__proto__", "constructor", "toJSON")),
      withBigInt: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withSparseArray: false,
      values: [
        fc.string({ unit: "binary" }),
        fc.double(),
        fc.constantFrom(undefined, null, -0, "$pawl", "undefined", '{"$pawl":"Date"}'),
        fc.date({ noInvalidDate: true }), // isDeepStrictEqual says that two invalid dates differ
        fc.bigInt(),
        fc.boolean(),
      ],
    });
    fc.assert(
      fc.property(anything, (value) => {
        const encoded = text(value);
        expect(isDeepStrictEqual(decode(encoded), value)).toBe(true);
        // A database returns the text through UTF-8, or with spaces after the colons (jsonb).
        expect(Buffer.from(encoded).toString()).toBe(encoded);
        expect(isDeepStrictEqual(decode(JSON.stringify(JSON.parse(encoded), null, 1)), value)).toBe(true);
        expect(text(decode(encoded))).toBe(encoded);
      }),
      { numRuns: sized(250, 2_000) },
    );
  });
});

describe("the encoded text", () => {
  test("has no raw NUL or control character, and no lone surrogate", () => {
    const encoded = text({ "\u0000k": "a\u0000b\u001f\ud800", d: new Date(0), u: new URL("http://x/%00") });
    expect(encoded).not.toMatch(/\p{Cc}|\p{Cs}/u);
    expect(encoded).toContain("a\\u0000b\\u001f\\ud800");
    expect(text("\u0000")).toBe('"\\u0000"');
  });

  test("is the same as in earlier versions", () => {
    expect(text(undefined)).toBe('{"$pawl":"undefined"}');
    expect(text({ at: new Date(0), n: 1n, x: Number.NaN, m: new Map([[1, undefined]]), s: new Set([1]) })).toBe(
      '{"at":{"$pawl":"Date","v":"1970-01-01T00:00:00.000Z"},"n":{"$pawl":"bigint","v":"1"},' +
        '"x":{"$pawl":"number","v":"NaN"},"m":{"$pawl":"Map","v":[[1,{"$pawl":"undefined"}]]},' +
        '"s":{"$pawl":"Set","v":[1]}}',
    );
    expect(text([{ $pawl: 1 }, /a/g, Buffer.from("a"), new URL("http://x")])).toBe(
      '[{"$pawl":"Object","v":{"$pawl":1}},{"$pawl":"RegExp","v":["a","g"]},{"$pawl":"Buffer","v":"YQ=="},' +
        '{"$pawl":"URL","v":"http://x/"}]',
    );
  });
});

describe("errors as values", () => {
  test("keep name, message, stack, code and any cause", () => {
    const error = Object.assign(new TypeError("m", { cause: new Map([[1, new Date(2)]]) }), { code: "E_M" });
    const back = roundTrip({ error }) as { error: Error };
    expect(back.error).toBeInstanceOf(TypeError);
    expect(back.error).toMatchObject({ name: "TypeError", message: "m", stack: error.stack, code: "E_M" });
    expect(back.error.cause).toEqual(new Map([[1, new Date(2)]]));
  });

  test("of other classes are restored as an Error with their name", () => {
    class CardError extends Error {
      override name = "CardError";
    }
    const back = roundTrip(new CardError("declined")) as Error;
    expect(Object.getPrototypeOf(back)).toBe(Error.prototype);
    expect(back.name).toBe("CardError");
    expect("cause" in back).toBe(false);
    const aborted = roundTrip(new DOMException("stop", "AbortError"));
    expect(aborted).toBeInstanceOf(Error);
    expect(aborted).toMatchObject({ name: "AbortError", message: "stop" });
  });

  test("of Pawl's listed classes are restored as instances of these classes", () => {
    expect(roundTrip(new PermanentError("p"))).toBeInstanceOf(PermanentError);
    expect(roundTrip(new TransientError("p", { retryAfter: "1s" }))).toMatchObject({ retryAfter: "1s" });
    expect(roundTrip(new PauseError("p", { resumeOn: "go" }))).toMatchObject({ resumeOn: "go" });
  });

  test("an AggregateError keeps its errors", () => {
    const back = roundTrip(new AggregateError([new Error("a"), "b"], "m")) as AggregateError;
    expect(back).toBeInstanceOf(AggregateError);
    expect(back.errors).toEqual([new Error("a"), "b"]);
  });
});

describe("instances of classes", () => {
  test("become plain objects of their own properties", () => {
    class Money {
      amount = 5;
      at = new Date(1);
      get double() {
        return this.amount * 2;
      }
    }
    const back = roundTrip({ price: new Money() }) as { price: object };
    expect(back).toEqual({ price: { amount: 5, at: new Date(1) } });
    expect(Object.getPrototypeOf(back.price)).toBe(Object.prototype);
  });

  test("are replaced by what toJSON returns for their key, as JSON.stringify does", () => {
    class Point {
      toJSON(key: string) {
        return { key, at: new Date(3), again: this.inner };
      }
      inner = { toJSON: () => new Set([1]) };
    }
    expect(roundTrip({ p: new Point() })).toEqual({ p: { key: "p", at: new Date(3), again: new Set([1]) } });
    expect(roundTrip({ toJSON: () => undefined })).toBeUndefined();
    const self = { a: 1, toJSON: () => self };
    Object.defineProperty(self, "toJSON", { enumerable: false });
    expect(roundTrip([self])).toEqual([{ a: 1 }]);
  });

  test("are replaced also when toJSON is not enumerable", () => {
    const object = Object.defineProperty({}, "toJSON", { value: () => ({ at: new Date(4) }) });
    expect(roundTrip(object)).toEqual({ at: new Date(4) });
    expect(roundTrip(Object.assign([1], { toJSON: () => [new Date(2)] }))).toEqual([new Date(2)]);
  });

  test("of a subclass of Array become arrays", () => {
    class List extends Array<unknown> {}
    expect(roundTrip(List.from([1, new Date(2)]))).toEqual([1, new Date(2)]);
  });
});

describe("a value that cannot be restored is refused, and the error says where it is", () => {
  const cycle: Record<string, unknown> = { a: { list: [] } };
  (cycle.a as { list: unknown[] }).list.push(cycle);
  const mapCycle = new Map();
  mapCycle.set("self", { mapCycle });
  class Query {
    // biome-ignore lint/suspicious/noThenProperty: a query builder that the code forgot to await
    then() {}
  }
  const errorCycle = new Error("m");
  errorCycle.cause = errorCycle;

  test.each<[unknown, string, RegExp]>([
    [() => 1, "$", /Cannot store the value: \$ is a function/],
    [{ items: [1, 2, 3, { fn: function send() {} }] }, "$.items[3].fn", /is a function \(send\)/],
    [{ "a b": { 'q"': Symbol("s") } }, '$["a b"]["q\\""]', /is a symbol/],
    [cycle, "$.a.list[0]", /a cycle/],
    [mapCycle, "$.entries[0][1].mapCycle", /a cycle/],
    [errorCycle, "$.cause", /a cycle/],
    [{ w: new WeakMap() }, "$.w", /is a WeakMap/],
    [{ w: new WeakSet() }, "$.w", /is a WeakSet/],
    [[Promise.resolve(1)], "$[0]", /is a Promise/],
    [{ rows: new Query() }, "$.rows", /a promise \(was it not awaited\?\)/],
    [{ q: new URLSearchParams("a=1") }, "$.q", /is a URLSearchParams/],
    [{ h: new Headers() }, "$.h", /is a Headers/],
    [new Map([[() => 1, 1]]), "$.entries[0][0]", /a function/],
    [new Set([1, Symbol("s")]), "$.values[1]", /a symbol/],
    [new Error("m", { cause: { f: () => 1 } }), "$.cause.f", /a function/],
  ])("%o", (value, path, message) => {
    const error = refusal(() => text(value));
    expect(error.path).toBe(path);
    expect(error.message).toMatch(message);
  });

  test("a getter that throws, with its error as the cause", () => {
    const cause = new RangeError("not today");
    const value = {
      deep: {
        get trap() {
          throw cause;
        },
      },
    };
    const error = refusal(() => text(value));
    expect(error.path).toBe("$.deep.trap");
    expect(error.cause).toBe(cause);
  });

  test("proxies that throw errors that cannot be inspected either", () => {
    const trap = () => {
      throw hostile;
    };
    const hostile: object = new Proxy({}, { get: trap, getPrototypeOf: trap, ownKeys: trap });
    const { proxy: revoked, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(refusal(() => text({ hostile })).path).toBe("$.hostile");
    expect(refusal(() => text([revoked])).path).toBe("$[0]");
    expect(roundTrip(new Proxy({ a: [1] }, {}))).toEqual({ a: [1] });
    expect(roundTrip(new Proxy([1, new Date(1)], {}))).toEqual([1, new Date(1)]);
  });

  test("a toJSON that never ends", () => {
    const endless = (): unknown => ({ toJSON: () => ({ next: endless() }) });
    expect(refusal(() => text(endless())).message).toMatch(/nested more than 200 levels/);
  });

  test("a SerializationError that user code throws becomes the cause, like any other error", () => {
    const thrown = new SerializationError("mine", { path: "$.other" });
    const error = refusal(() => text({ toJSON: () => refuseWith(thrown) }));
    expect(error).not.toBe(thrown);
    expect(error.cause).toBe(thrown);
  });
});

function refuseWith(error: Error): never {
  throw error;
}

describe("depth", () => {
  const wraps: Array<[string, (inner: unknown) => unknown]> = [
    ["arrays", (inner) => [inner]],
    ["objects", (inner) => ({ inner })],
    ["Maps", (inner) => new Map([[1, inner]])],
    ["Map keys", (inner) => new Map([[inner, 1]])],
    ["Sets", (inner) => new Set([inner])],
    ["escaped objects", (inner) => ({ $pawl: inner })],
    ["objects beside an undefined", (inner) => ({ u: undefined, inner })],
  ];

  test.each(wraps)("200 %s in each other are kept, 201 are refused", (_name, wrap) => {
    expect(isDeepStrictEqual(roundTrip(nested(200, wrap)), nested(200, wrap))).toBe(true);
    expect(refusal(() => text(nested(201, wrap))).message).toMatch(/nested more than 200 levels deep/);
  });

  test.each(wraps)("%s that were encoded with a depth limit can be decoded with the same limit", (_name, wrap) => {
    const encoded = text(nested(7, wrap), { maxDepth: 7 });
    expect(isDeepStrictEqual(decode(encoded, { depth: 7 }), nested(7, wrap))).toBe(true);
    expect(refusal(() => decode(text(nested(300, wrap), { maxDepth: 300 }))).message).toMatch(/nested more than 200/);
  });

  test("leaves at the deepest level are kept", () => {
    const value = nested(199, (inner) => [inner, new Date(1), undefined, 1n, Buffer.from("x"), new URL("http://x")]);
    expect(isDeepStrictEqual(roundTrip([value]), [value])).toBe(true);
  });

  test.each([20_000, sized(200_000, 1_000_000)])(
    "%i levels do not overflow the stack, in either direction",
    (levels) => {
      for (const wrap of [(inner: unknown) => [inner], (inner: unknown) => ({ a: inner, u: undefined })]) {
        expect(refusal(() => text(nested(levels, wrap))).path.length).toBeLessThan(300);
      }
      expect(refusal(() => decode("[".repeat(levels) + "]".repeat(levels))).message).toMatch(/200 levels deep/);
      expect(refusal(() => decode(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`)).message).toMatch(
        /200 levels deep/,
      );
      const tags = `${'{"$pawl":"Set","v":['.repeat(levels)}1${"]}".repeat(levels)}`;
      expect(refusal(() => decode(tags)).message).toMatch(/200 levels deep/);
      expect(refusal(() => decode("[".repeat(levels))).message).toMatch(/not JSON/);
    },
  );

  test("a depth that overflows the stack is refused, although the limit allows it", () => {
    refusal(() => text(nested(1_000_000), { maxDepth: 10_000_000 }));
  });
});

describe("size", () => {
  const limit = 1024 * 1024;

  test("the limit itself is allowed, one byte more is not", () => {
    expect(text("x".repeat(limit - 2))).toHaveLength(limit);
    for (const wrap of [(s: string) => s, (s: string) => [s, new Date(0)]]) {
      const overhead = Buffer.byteLength(text(wrap("")));
      expect(Buffer.byteLength(text(wrap("x".repeat(limit - overhead))))).toBe(limit);
      try {
        text(wrap("x".repeat(limit - overhead + 1)));
        expect.unreachable();
      } catch (error) {
        expect(error).toBeInstanceOf(PayloadTooLargeError);
        expect(error).toMatchObject({ what: "the value", bytes: limit + 1, limit });
      }
    }
  });

  test("counts bytes of UTF-8", () => {
    expect(text("é".repeat(4), { limitBytes: 10 })).toHaveLength(6);
    expect(() => text("é".repeat(5), { limitBytes: 10 })).toThrow(PayloadTooLargeError);
    expect(() => text("\ud800", { limitBytes: 7 })).toThrow(/it is 8 bytes and the limit is 7/);
    expect(() => text(undefined, { limitBytes: 5 })).toThrow(PayloadTooLargeError);
    expect(() => text(12345, { limitBytes: 4 })).toThrow(PayloadTooLargeError);
  });

  test("the error names the exact size of a value that is a few times too large", () => {
    const value = Array.from({ length: 300_000 }, (_, index) => ({ index }));
    const bytes = JSON.stringify(value).length;
    expect(bytes).toBeGreaterThan(4 * limit);
    expect(() => text(value)).toThrow(new RegExp(`it is ${bytes} bytes`));
  });

  test("a value whose text would be exponentially long is refused early", () => {
    const started = performance.now();
    for (const wrap of [
      (inner: unknown) => [inner, inner],
      (inner: unknown) => ({ a: inner, b: inner }),
      (inner: unknown) => new Set([[inner], [inner]]),
      (inner: unknown) => ({ $pawl: inner, "": inner }),
    ]) {
      for (const seed of [[], undefined]) {
        let value: unknown = seed;
        for (let level = 0; level < 64; level++) value = wrap(value);
        expect(() => text(value, { limitBytes: sized(100_000, limit) })).toThrow(PayloadTooLargeError);
      }
    }
    expect(() => text(new Array(4_294_967_295))).toThrow(PayloadTooLargeError);
    expect(() => text(new Uint8Array(100_000_000))).toThrow(PayloadTooLargeError);
    expect(() => text(["x".repeat(400_000_000)])).toThrow(PayloadTooLargeError);
    expect(performance.now() - started).toBeLessThan(100_000); // It takes less than a second; without the budget it would never end.
  });
});

describe("decoding does not change prototypes", () => {
  test.each([
    '{"__proto__":{"polluted":1}}',
    '{"__proto__":{"$pawl":"Map","v":[]}}',
    '{"a":{"__proto__":{"$pawl":"undefined"}}}',
    '{"$pawl":"Object","v":{"__proto__":{"$pawl":"Date","v":null},"$pawl":1}}',
    '{"constructor":{"prototype":{"polluted":1}},"d":{"$pawl":"undefined"}}',
    '{"$pawl":"Error","v":{"name":"__proto__","message":"constructor","__proto__":{"polluted":1}}}',
  ])("%s", (encoded) => {
    const value = decode(encoded) as Record<string, unknown>;
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect([Object.prototype, Error.prototype]).toContain(Object.getPrototypeOf(value));
  });

  test("__proto__ as an own key is restored as an own key", () => {
    const value = JSON.parse('{"__proto__":{"x":1},"b":2}');
    const back = decode(text({ value, at: new Date(0) })) as { value: object };
    expect(Object.keys(back.value)).toEqual(["__proto__", "b"]);
    expect(Object.getPrototypeOf(back.value)).toBe(Object.prototype);
    expect(Object.hasOwn(roundTrip(value) as object, "__proto__")).toBe(true);
  });
});

describe("damaged texts are refused with a SerializationError", () => {
  test.each([
    ["", /\$ is not JSON/],
    ["{", /not JSON/],
    ["undefined", /not JSON/],
    ['{"a":[1,{"$pawl":"Temporal","v":1}]}', /\$\.a\[1\] is of a type that this version of Pawl does not know/],
    ['{"$pawl":5}', /does not know/],
    ['{"$pawl":"toString"}', /does not know/],
    ['{"$pawl":{"$pawl":"Date"}}', /does not know/],
    ['{"$pawl":"bigint","v":"0x10"}', /not a bigint/],
    ['{"$pawl":"bigint","v":""}', /not a bigint/],
    ['{"$pawl":"number","v":"5"}', /not a special number/],
    ['{"$pawl":"Map","v":{}}', /not a list/],
    ['{"$pawl":"Map","v":[1]}', /not a list/],
    ['{"$pawl":"Set"}', /not a list/],
    ['{"$pawl":"Object","v":null}', /not an object/],
    ['{"$pawl":"Error","v":{"name":"x"}}', /not a string/],
    ['{"$pawl":"RegExp","v":["(",""]}', /not a value of its type/],
    ['{"$pawl":"URL","v":"nonsense"}', /not a value of its type/],
    ['{"$pawl":"Uint16Array","v":"AAAA"}', /not a value of its type/],
    ['{"$pawl":"Buffer","v":[1]}', /not a string/],
  ])("%s", (encoded, message) => {
    expect(refusal(() => decode(encoded)).message).toMatch(message);
  });

  test("decoding any text returns a value or throws a SerializationError", () => {
    const tag = fc.constantFrom(
      "Date",
      "Map",
      "Set",
      "Error",
      "RegExp",
      "URL",
      "Object",
      "bigint",
      "number",
      "Int16Array",
    );
    const { node } = fc.letrec<{ node: unknown }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 6 },
        fc.jsonValue(),
        fc.array(tie("node"), { maxLength: 3 }),
        fc.record({ $pawl: fc.oneof(tag, tie("node")), v: tie("node") }),
        fc.record({
          $pawl: fc.constant("Error"),
          v: fc.record({ name: tie("node"), message: fc.string(), cause: tie("node") }),
        }),
      ),
    }));
    fc.assert(
      fc.property(node, (value) => {
        try {
          decode(JSON.stringify(value));
        } catch (error) {
          expect(error).toBeInstanceOf(SerializationError);
        }
      }),
      { numRuns: sized(250, 2_000) },
    );
  });
});
