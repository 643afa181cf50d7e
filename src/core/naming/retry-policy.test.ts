import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError, PauseError, PermanentError, TransientError } from "../errors/errors.js";
import { DEFAULT_RETRY, nextDelayMs, type RetryOptions, resolveRetry, shouldRetry } from "./retry-policy.js";

const delays = (options: RetryOptions, random: number, count = 5) =>
  Array.from({ length: count }, (_, index) => nextDelayMs(resolveRetry(options), index + 1, random));

describe("resolveRetry", () => {
  test("defaults to four attempts with delays from one second, doubling up to an hour, with jitter", () => {
    expect(resolveRetry()).toEqual({ ...DEFAULT_RETRY });
    expect(DEFAULT_RETRY).toMatchObject({
      attempts: 4,
      initialMs: 1000,
      factor: 2,
      maxMs: 3_600_000,
      jitter: true,
    });
  });

  test("takes options that are left out from the defaults", () => {
    const defaults = resolveRetry({ attempts: 9, max: "5m", jitter: 0.1 });
    const retryIf = () => false;
    expect(resolveRetry({ initial: "2s", retryIf }, defaults)).toMatchObject({
      attempts: 9,
      initialMs: 2000,
      maxMs: 300_000,
      jitter: 0.1,
      retryIf,
    });
    expect(resolveRetry({ attempts: undefined } as unknown as RetryOptions).attempts).toBe(4);
  });

  test.each<[unknown, RegExp]>([
    [{ attempts: 0 }, /attempts cannot be 0; it must be 1, 2, 3… or Infinity/],
    [{ attempts: 1.5 }, /attempts/],
    [{ attempts: Number.NaN }, /attempts/],
    [{ attempts: "3" }, /attempts/],
    [{ factor: 0.5 }, /factor/],
    [{ factor: Number.POSITIVE_INFINITY }, /factor/],
    [{ factor: Number.NaN }, /factor/],
    [{ jitter: 2 }, /jitter/],
    [{ jitter: -0.1 }, /jitter/],
    [{ jitter: Number.NaN }, /jitter/],
    [{ jitter: Object.create(null) }, /jitter cannot be an object/],
    [{ initial: "soon" }, /retry initial, "soon",/],
    [{ initial: -5 }, /negative/],
    [{ max: Number.NaN }, /retry max/],
    [{ retryIf: true }, /retryIf/],
    [{ backoff: "exponential" }, /backoff/],
    [{ attemps: 5 }, /retry has no option "attemps"; did you mean "attempts"\? Its options are attempts, initial/],
  ])("refuses %o", (options, message) => {
    const resolve = () => resolveRetry(options as RetryOptions);
    expect(resolve).toThrow(InvalidInputError);
    expect(resolve).toThrow(message);
  });
});

describe("nextDelayMs", () => {
  test("grows by the factor up to the maximum", () => {
    expect(delays({ initial: "1s", factor: 3, max: "20s", jitter: false }, 0.5)).toEqual([
      1000, 3000, 9000, 20_000, 20_000,
    ]);
  });

  test("is fixed with factor 1", () => {
    expect(delays({ initial: 70, factor: 1, jitter: false }, 0.5, 3)).toEqual([70, 70, 70]);
  });

  test("is shortened by up to half with jitter", () => {
    expect(delays({}, 0, 3)).toEqual([500, 1000, 2000]);
    expect(delays({}, 1 - Number.EPSILON, 3)).toEqual([1000, 2000, 4000]);
  });

  test("varies in both directions with a number as jitter, up to the maximum", () => {
    expect(delays({ jitter: 0.1, max: "4s" }, 0, 4)).toEqual([900, 1800, 3600, 3600]);
    expect(delays({ jitter: 0.1, max: "4s" }, 1, 4)).toEqual([1100, 2200, 4000, 4000]);
  });

  test("is what the backoff function returns, without jitter and maximum", () => {
    const error = new Error("busy");
    const policy = resolveRetry({ max: "1s", backoff: (attempt, e) => (e === error ? { minutes: attempt } : 0) });
    expect(nextDelayMs(policy, 3, 0, error)).toBe(180_000);
  });

  test("throws when the backoff function returns no duration", () => {
    const policy = resolveRetry({ backoff: () => Number.NaN });
    expect(() => nextDelayMs(policy, 1, 0)).toThrow(/The backoff NaN is not a number/);
  });

  test("is the retryAfter of a TransientError, if it has one", () => {
    const policy = resolveRetry({ max: "1s" });
    expect(nextDelayMs(policy, 1, 0.5, new TransientError("busy", { retryAfter: "30s" }))).toBe(30_000);
    expect(nextDelayMs(policy, 1, 1, new TransientError("busy"))).toBe(1000);
  });

  test("is a whole number of milliseconds within the maximum, whatever the policy", () => {
    const options = fc.record(
      {
        initial: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 10 ** 13 }), fc.double({ min: 0, max: 10 })),
        factor: fc.double({ min: 1, max: 1e300, noNaN: true }),
        max: fc.integer({ min: 0, max: 10 ** 13 }),
        jitter: fc.oneof(fc.boolean(), fc.double({ min: 0, max: 1, noNaN: true })),
      },
      { requiredKeys: ["initial", "max"] },
    );
    const attempt = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.constant(Number.MAX_SAFE_INTEGER));
    const random = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constant(Number.NaN), fc.constant(7));
    fc.assert(
      fc.property(options, attempt, random, ({ initial, ...rest }, n, r) => {
        const policy = resolveRetry({ ...rest, initial: Number.isNaN(initial) ? 1 : initial } as RetryOptions);
        const delay = nextDelayMs(policy, n, r);
        expect(Number.isSafeInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(policy.maxMs);
      }),
    );
  });
});

describe("shouldRetry", () => {
  test("is true until the attempts are used up", () => {
    const policy = resolveRetry({ attempts: 3 });
    expect([1, 2, 3, 4].map((attempt) => shouldRetry(policy, attempt, new Error()))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(shouldRetry(resolveRetry({ attempts: 1 }), 1, new Error())).toBe(false);
    expect(shouldRetry(resolveRetry({ attempts: Number.POSITIVE_INFINITY }), 1e9, new Error())).toBe(true);
  });

  test("is true only for errors that retryIf accepts", () => {
    const policy = resolveRetry({ retryIf: (error) => error instanceof RangeError });
    expect(shouldRetry(policy, 1, new RangeError())).toBe(true);
    expect(shouldRetry(policy, 1, new TypeError())).toBe(false);
  });

  test("is false for permanent errors and pauses, and true for transient errors", () => {
    const policy = resolveRetry({ attempts: 2, retryIf: () => true });
    expect(shouldRetry(policy, 1, new PermanentError("no"))).toBe(false);
    expect(shouldRetry(policy, 1, new PauseError("wait"))).toBe(false);
    expect(shouldRetry(policy, 99, new TransientError("busy"))).toBe(true);
  });
});
