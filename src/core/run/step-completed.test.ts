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
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, encode(field, { label: name })]));

describe("the data of step.completed", () => {
  test("is JSON with the facts and the values that it was written with", () => {
    fc.assert(
      fc.property(facts, values, (stepFacts, userValues) => {
        const data = writeStepCompleted(stepFacts, encoded(userValues));
        const read = decode(data) as object;
        expect(read).toEqual({
          ...plain(stepFacts),
          ...(decode(writeStepCompleted({}, encoded(userValues))) as object),
        });
        expect(Object.keys(read)).toEqual(order.filter((name) => name in stepFacts || name in userValues));
      }),
    );
  });

  test("has facts and an output that can be read without decoding, whatever the values contain", () => {
    fc.assert(
      fc.property(facts, values, (stepFacts, userValues) => {
        const raw = encoded(userValues);
        const data = writeStepCompleted(stepFacts, raw);
        expect(readStepFacts(data)).toEqual(plain(stepFacts));
        expect(stepOutputText(data)).toBe(raw.output ?? null);
        expect(hasStepOutput(data)).toBe("output" in userValues);
      }),
    );
  });

  test("keeps everything else when it gets a hash", () => {
    fc.assert(
      fc.property(facts, values, hash, (stepFacts, userValues, stamp) => {
        const raw = encoded(userValues);
        const stamped = withStepHash(writeStepCompleted(stepFacts, raw), stamp);
        expect(stamped).toBe(writeStepCompleted({ ...stepFacts, hash: stamp }, raw));
      }),
    );
  });

  test("is the same for encoded values and for values that are encoded while it is written", () => {
    fc.assert(
      fc.property(facts, values, (stepFacts, userValues) => {
        expect(writeStepCompleted({ ...stepFacts, ...userValues })).toBe(
          writeStepCompleted(stepFacts, encoded(userValues)),
        );
      }),
    );
  });

  test("has its fields in a fixed order, also when they are given in another order", () => {
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

/** The facts with 0 in place of -0, which JSON does not have. */
const plain = (stepFacts: { readonly ms?: number }) =>
  "ms" in stepFacts ? { ...stepFacts, ms: (stepFacts.ms as number) + 0 } : stepFacts;
