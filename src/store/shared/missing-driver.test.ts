import { expect, test } from "vitest";
import { createDriverError } from "./missing-driver.js";

const createError = (message: string, code?: string) => Object.assign(new Error(message), { code });

test("the error for a missing package says how to install it", () => {
  const cause = createError("Cannot find package 'pg' imported from /app/dist/driver.js", "ERR_MODULE_NOT_FOUND");
  expect(createDriverError("pg", "run: npm install pg", cause)).toMatchObject({
    message: "run: npm install pg",
    cause,
  });
  const required = createError("Cannot find module 'mysql2/promise'", "MODULE_NOT_FOUND");
  expect(createDriverError("mysql2", "run: npm install mysql2", required).message).toBe("run: npm install mysql2");
});

test("the error for a driver that a bundle has broken says to leave it out of the bundle", () => {
  const messageFor = (cause: Error) => createDriverError("pg", "run: npm install pg", cause).message;
  expect(messageFor(createError('Dynamic require of "events" is not supported'))).toBe(
    'The driver pg cannot be loaded: Dynamic require of "events" is not supported. If this program is bundled, leave the driver out of the bundle (esbuild: --external:pg) and install it next to the bundle.',
  );
  expect(messageFor(createError("Cannot find package 'pg-types' imported from …", "ERR_MODULE_NOT_FOUND"))).toContain(
    "--external:pg",
  );
  expect(messageFor(createError("Could not locate the bindings file. Tried:\n → /a\n → /b"))).toContain(
    "Could not locate the bindings file. If this program is bundled",
  );
});
