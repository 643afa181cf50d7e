import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decode } from "../encoding/decode.js";
import { encode } from "../encoding/encode.js";
import { dataOf, newEvent } from "./event.js";
import { hasStepOutput, readStepFacts, stepOutputText, withStepHash, writeStepCompleted } from "./step-completed.js";

const hash = fc.stringMatching(/^[0-9a-f]{64}$/);
const facts = fc.record(
  {
    undo: fc.constant(true as const),
    hash,
    by: fc.constant("operator" as const),
    ms: fc.oneof(fc.nat(), fc.double({ noNaN: true, noDefaultInfinity: true })),
  },
  { requiredKeys: [] },
);

/** Text that looks like a fact, or like the end of a value. */
const misleading = fc.constantFrom(
  `"hash":"${"0".repeat(64)}"`,
  '{"undo":true,',
  '"by":"operator"',
  '"by":"operator",',
  '"ms":1,"output":2}',
  ',"input":3}',
  '"output":',
  '\\"}],"output":4',
  "\\",
  '"',
);
const text = fc.oneof(
  misleading,
  fc.array(misleading).map((parts) => parts.join("")),
  fc.string({ unit: "binary" }),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.constantFrom(null, true, undefined, Number.NaN),
    fc.double(),
    fc.bigInt(),
    fc.date({ noInvalidDate: true }),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.oneof(text, fc.constantFrom("undo", "hash", "by", "ms", "output", "input")), tie("value"), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
}));
const values = fc.record({ output: value, input: value }, { requiredKeys: [] });

const encoded = (fields: { output?: unknown; input?: unknown }): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, encode(one, { label: name })]));

describe("the data of step.completed", () => {
  test("is JSON with the facts and the values that it was written with", () => {
    fc.assert(
      fc.property(facts, values, (known, given) => {
        const data = writeStepCompleted(known, encoded(given));
        const read = decode(data) as object;
        expect(read).toEqual({ ...plain(known), ...(decode(writeStepCompleted({}, encoded(given))) as object) });
        expect(Object.keys(read)).toEqual(order.filter((name) => name in known || name in given));
      }),
    );
  });

  test("tells its facts and the text of its output without being decoded, whatever the values contain", () => {
    fc.assert(
      fc.property(facts, values, (known, given) => {
        const raw = encoded(given);
        const data = writeStepCompleted(known, raw);
        expect(readStepFacts(data)).toEqual(plain(known));
        expect(stepOutputText(data)).toBe(raw.output ?? null);
        expect(hasStepOutput(data)).toBe("output" in given);
      }),
    );
  });

  test("keeps everything else when it gets a hash", () => {
    fc.assert(
      fc.property(facts, values, hash, (known, given, stamp) => {
        const raw = encoded(given);
        const stamped = withStepHash(writeStepCompleted(known, raw), stamp);
        expect(stamped).toBe(writeStepCompleted({ ...known, hash: stamp }, raw));
      }),
    );
  });

  test("is the same whether values come encoded or not", () => {
    fc.assert(
      fc.property(facts, values, (known, given) => {
        expect(writeStepCompleted({ ...known, ...given })).toBe(writeStepCompleted(known, encoded(given)));
      }),
    );
  });

  test("is in this order, also when its facts are given in another", () => {
    const place = { node: "a", attempt: 1 };
    const done = newEvent("step.completed", place, { ms: 3, undo: true }, { input: "2", output: '{"by":"operator"}' });
    expect(done.data).toBe('{"undo":true,"ms":3,"output":{"by":"operator"},"input":2}');
    expect(dataOf(done, "step.completed")).toEqual({ undo: true, ms: 3, output: { by: "operator" }, input: 2 });
  });

  test("that cannot be read has no facts and no output", () => {
    for (const damaged of ["", "{", "not json", '["undo":true]', '"hash":"0"', " {}"]) {
      expect(readStepFacts(damaged)).toEqual({});
      expect(stepOutputText(damaged)).toBeNull();
    }
    expect(readStepFacts(null)).toEqual({});
  });
});

const order = ["undo", "hash", "by", "ms", "output", "input"];

/** JSON has no -0. */
const plain = (known: { readonly ms?: number }) => ("ms" in known ? { ...known, ms: (known.ms as number) + 0 } : known);
