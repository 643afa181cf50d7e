import { expect, test } from "vitest";
import { InvalidInputError } from "../../core/errors/errors.js";
import { isRemoteUrl, parseRemoteAddress } from "./address.js";

test.each([
  ["libsql://shop.turso.io", "wss://shop.turso.io"],
  ["LIBSQL://shop.turso.io/", "wss://shop.turso.io"],
  ["libsql://localhost:8080?tls=0", "ws://localhost:8080"],
  ["https://shop.turso.io", "https://shop.turso.io"],
  ["http://127.0.0.1:8080", "http://127.0.0.1:8080"],
  ["wss://db.example.com/shop", "wss://db.example.com/shop"],
  ["ws://127.0.0.1:8080", "ws://127.0.0.1:8080"],
])("%s is reached at %s", (given, url) => {
  expect(isRemoteUrl(given)).toBe(true);
  expect(parseRemoteAddress(given, undefined).url).toBe(url);
});

test.each(["libsql:./pawl.db", "libsql:///srv/pawl.db", "libsql::memory:", "file:./pawl.db", "file:///srv/pawl.db"])(
  "%s is a file",
  (given) => expect(isRemoteUrl(given)).toBe(false),
);

test("the token is an option or a parameter of the URL, and in no description", () => {
  const inUrl = parseRemoteAddress("libsql://shop.turso.io?authToken=secret", undefined);
  expect(inUrl).toMatchObject({ authToken: "secret", url: "wss://shop.turso.io", description: "libsql shop.turso.io" });
  expect(parseRemoteAddress("libsql://shop.turso.io", "secret").authToken).toBe("secret");
  expect(parseRemoteAddress("libsql://shop.turso.io?authToken=secret", "secret").authToken).toBe("secret");
  expect(parseRemoteAddress("libsql://shop.turso.io", "").authToken).toBeUndefined();
});

test.each([
  ["libsql://shop.turso.io?authToken=secret&sync=1", 'the parameter "sync"'],
  ["https://shop.turso.io?tls=0", 'the parameter "tls"'],
  ["libsql://me:secret@shop.turso.io", "a libSQL server knows tokens"],
  ["libsql://:secret@localhost:8080", "a libSQL server knows tokens"],
  ["libsql://shop.turso.io#secret", 'behind "#"'],
  ["libsql://./secret.db", 'written without slashes: "libsql:./pawl.db"'],
  ["http://", "cannot be read"],
])("%s is refused, and says why without a secret", (given, why) => {
  expect(() => parseRemoteAddress(given, undefined)).toThrow(InvalidInputError);
  expect(() => parseRemoteAddress(given, undefined)).toThrow(why);
  expect(() => parseRemoteAddress(given, undefined)).not.toThrow("secret");
});

test("two different tokens are refused", () => {
  expect(() => parseRemoteAddress("libsql://shop.turso.io?authToken=one", "two")).toThrow("give one of them");
});
