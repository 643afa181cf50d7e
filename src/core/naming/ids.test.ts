import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../errors/errors.js";
import { attemptRunId, childRunId, executionId, isUuid, seededRandom, seededUuid, uuidv7 } from "./ids.js";

const PARENT = "0190b8a2-1234-7abc-8def-0123456789ab";

describe("uuidv7", () => {
  test("matches the example of RFC 9562", () => {
    // 2022-02-22T19:22:22Z, rand_a CC3, rand_b 18C4DC0C0C07398F
    expect(uuidv7(0x017f22e279b0, "cc318c4dc0c0c07398f0")).toBe("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  });

  test("sorts by time, keeps version and variant, and is lowercase", () => {
    const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });
    const noise = fc.uint8Array({ minLength: 10, maxLength: 10 }).map((bytes) => Buffer.from(bytes).toString("hex"));
    fc.assert(
      fc.property(time, time, noise, noise, (first, second, a, b) => {
        const [early, late] = [uuidv7(Math.min(first, second), a), uuidv7(Math.max(first, second), b)];
        expect(early).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        if (first !== second) expect(early < late).toBe(true);
        expect(Number.parseInt(late.slice(0, 13).replace("-", ""), 16)).toBe(Math.max(first, second));
      }),
    );
  });

  test("contains all random bits except those that version and variant replace", () => {
    const [zeros, ones] = [uuidv7(0, "0".repeat(20)), uuidv7(0, "f".repeat(20))];
    expect(zeros).toBe("00000000-0000-7000-8000-000000000000");
    expect(ones).toBe("00000000-0000-7fff-bfff-ffffffffffff");
  });

  test("refuses a time that does not fit and too little randomness", () => {
    for (const time of [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 48]) {
      expect(() => uuidv7(time, "0".repeat(20))).toThrow(InvalidInputError);
    }
    for (const noise of ["", "0".repeat(19), "0".repeat(21), "g".repeat(20)]) {
      expect(() => uuidv7(1, noise)).toThrow(/10 random bytes/);
    }
    expect(uuidv7(1.9, "0".repeat(20))).toBe(uuidv7(1, "0".repeat(20)));
  });
});

describe("isUuid", () => {
  test("accepts UUIDs in either case, and nothing else", () => {
    expect(isUuid(PARENT)).toBe(true);
    expect(isUuid(PARENT.toUpperCase())).toBe(true);
    for (const text of ["", "r1", `${PARENT}0`, ` ${PARENT}`, `${PARENT}\n`, PARENT.replaceAll("-", "")]) {
      expect(isUuid(text)).toBe(false);
    }
  });
});

describe("childRunId", () => {
  test("is the same each time, and begins with the parent's time", () => {
    const id = childRunId(PARENT, "items", 7);
    expect(id).toBe(childRunId(PARENT, "items", 7));
    expect(id).toMatch(/^0190b8a2-1234-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test("is the same as in earlier versions, because open runs find their children by it", () => {
    expect(childRunId(PARENT, "items", 7)).toBe("0190b8a2-1234-8730-9721-afaf0c975793");
    const digest = createHash("sha256").update(`36:${PARENT}7:items`).digest("hex");
    expect(childRunId(PARENT, "items", 7).slice(24)).toBe(digest.slice(20, 32));
  });

  test("differs when any part differs, also when the concatenated parts are equal", () => {
    const ids = [
      childRunId(PARENT, "a", 1),
      childRunId(PARENT, "a", 2),
      childRunId(PARENT, "b", 1),
      childRunId(PARENT, "1:a", 1),
      childRunId(PARENT, "a", 11),
      childRunId(PARENT.replace("b", "c"), "a", 1),
      childRunId("r1", "a", 1),
      childRunId("r", "a", 11),
      childRunId("r11", "a", 1),
    ];
    expect(new Set(ids.map((id) => id.slice(14))).size).toBe(ids.length);
  });

  test("differs from every attemptRunId", () => {
    const nodes = ["a", "1:a", "attempt 1:a"];
    const numbers = [0, 1, 2, 11];
    const ids = nodes.flatMap((node) =>
      numbers.flatMap((number) => [childRunId(PARENT, node, number), attemptRunId(PARENT, node, number)]),
    );
    expect(new Set(ids).size).toBe(ids.length);
    expect(attemptRunId(PARENT, "items", 7)).toMatch(/^0190b8a2-1234-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test("is unique among 100,000 children", () => {
    const ids = new Set(Array.from({ length: 100_000 }, (_, index) => childRunId(PARENT, "map", index)));
    expect(ids.size).toBe(100_000);
  });

  test("is a UUID also when the parent's id is not", () => {
    expect(isUuid(childRunId("my-own-id", "n", 0))).toBe(true);
  });

  test("uses SHA-256, for texts of every length and kind", () => {
    const check = (node: string, index: number) => {
      const digest = createHash("sha256").update(`1:r${index}:${node}`).digest("hex");
      const id = childRunId("r", node, index).replaceAll("-", "");
      // All digits except those of version and variant.
      expect(id.slice(0, 12) + id.slice(13, 16) + id.slice(17)).toBe(
        digest.slice(0, 12) + digest.slice(13, 16) + digest.slice(17, 32),
      );
    };
    for (let length = 0; length < 260; length++) check("x".repeat(length), 0);
    fc.assert(fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), fc.nat(), check));
  });
});

describe("executionId", () => {
  test("contains the run, the node and the attempt in readable form", () => {
    expect(executionId(PARENT, "send_welcome", 2)).toBe(`${PARENT}:send_welcome:2`);
    expect(executionId("r1", "it's a/b #2", 1)).toBe("r1:it's a/b #2:1");
  });

  test("is valid in an HTTP header, and differs for different nodes", () => {
    expect(executionId("r1", "größe 😀", 1)).toBe("r1:gr%C3%B6%C3%9Fe %F0%9F%98%80:1");
    expect(executionId("r1", "gr%C3%B6", 1)).not.toBe(executionId("r1", "grö", 1));
    new Headers({ "idempotency-key": executionId("r1", "größe 😀 %", 1) });
  });
});

describe("seededRandom", () => {
  test("is the same for the same seed, on every machine", () => {
    const random = seededRandom("r1:1");
    expect([random(), random(), random()]).toEqual([0.43289568940604073, 0.15288507407049146, 0.42617244777368457]);
    const again = seededRandom("r1:1");
    const other = seededRandom("r1:2");
    expect([again(), again()]).not.toEqual([other(), other()]);
  });

  test("is spread evenly between 0 and 1", () => {
    const random = seededRandom("even");
    const buckets = new Array<number>(16).fill(0);
    let outside = 0;
    for (let draw = 0; draw < 160_000; draw++) {
      const value = random();
      if (!(value >= 0 && value < 1)) outside += 1;
      const bucket = Math.floor(value * 16);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    expect(outside).toBe(0);
    // Ten standard deviations (97 each) around 10,000.
    for (const count of buckets) expect(Math.abs(count - 10_000)).toBeLessThan(970);
  });
});

describe("seededUuid", () => {
  test("is a UUID of version 4 that the seed determines", () => {
    const first = seededUuid(seededRandom("r1"));
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(seededUuid(seededRandom("r1"))).toBe(first);
    expect(seededUuid(seededRandom("r2"))).not.toBe(first);
  });

  test("does not repeat itself", () => {
    const random = seededRandom("r1");
    expect(new Set(Array.from({ length: 10_000 }, () => seededUuid(random))).size).toBe(10_000);
  });
});
