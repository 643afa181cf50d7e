/** Options that cannot be meant are refused when the handler is made. */
import { connect } from "pawl";
import { type HttpOptions, httpHandler } from "pawl/http";
import { expect, onTestFinished, test } from "vitest";
import { silent } from "../support/virtual-worlds.js";

const mistakes: [options: object, message: string][] = [
  [{ authorise: () => null }, 'httpHandler() has no option "authorise"'],
  [{ authorize: "secret" }, "httpHandler({ authorize }) must be a function."],
  [{ redact: true }, "httpHandler({ redact }) must be a function."],
  [{ maxBodyBytes: 0 }, "httpHandler({ maxBodyBytes }) is a whole number above 0, not 0."],
  [{ maxStreams: Number.NaN }, "httpHandler({ maxStreams }) is a whole number above 0, not NaN."],
  [{ basePath: "pawl" }, 'basePath must be a path such as "/pawl", not "pawl".'],
];

test.each(mistakes)("%o is refused", async (options, message) => {
  const pawl = await connect("memory:", { logger: silent });
  onTestFinished(() => pawl.close());
  expect(() => httpHandler(pawl, options as HttpOptions)).toThrow(message);
});

test("an error that only the log explains can be found there", async () => {
  const errors: string[] = [];
  const pawl = await connect("memory:", { logger: { ...silent, error: (text) => void errors.push(String(text)) } });
  onTestFinished(() => pawl.close());
  const handle = httpHandler(pawl, {
    authorize: () => {
      throw new Error("the directory of users is away");
    },
  });
  const response = await handle(new Request("http://ops.example/api/v1/runs"));
  expect(response.status).toBe(500);
  const text = await response.text();
  expect(text).not.toContain("directory");
  const [, id = "?"] = /Look for ([0-9a-f]{12}) there\./.exec(text) ?? [];
  expect(errors).toEqual([`HTTP request failed (GET /api/v1/runs, ${id}).`]);
});
