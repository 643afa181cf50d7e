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
])("for %s the driver connects to %s", (userUrl, url) => {
  expect(isRemoteUrl(userUrl)).toBe(true);
  expect(parseRemoteAddress(userUrl, undefined).url).toBe(url);
});

test.each(["libsql:./pawl.db", "libsql:///srv/pawl.db", "libsql::memory:", "file:./pawl.db", "file:///srv/pawl.db"])(
  "%s names a file, not a server",
  (url) => expect(isRemoteUrl(url)).toBe(false),
);

test("the token is an option or a parameter of the URL, and is not part of the description", () => {
  const inUrl = parseRemoteAddress("libsql://shop.turso.io?authToken=secret", undefined);
  expect(inUrl).toMatchObject({ authToken: "secret", url: "wss://shop.turso.io", description: "libsql shop.turso.io" });
  expect(parseRemoteAddress("libsql://shop.turso.io", "secret").authToken).toBe("secret");
  expect(parseRemoteAddress("libsql://shop.turso.io?authToken=secret", "secret").authToken).toBe("secret");
  expect(parseRemoteAddress("libsql://shop.turso.io", "").authToken).toBeUndefined();
});

test.each([
  ["libsql://shop.turso.io?authToken=secret&sync=1", 'the parameter "sync"'],
  ["https://shop.turso.io?tls=0", 'the parameter "tls"'],
  ["libsql://me:secret@shop.turso.io", "a libSQL server uses tokens"],
  ["libsql://:secret@localhost:8080", "a libSQL server uses tokens"],
  ["libsql://shop.turso.io#secret", 'after "#"'],
  ["libsql://./secret.db", 'write it without slashes: "libsql:./pawl.db"'],
  ["http://", "is not valid"],
])("%s is refused with a reason that does not contain the secret", (url, reason) => {
  expect(() => parseRemoteAddress(url, undefined)).toThrow(InvalidInputError);
  expect(() => parseRemoteAddress(url, undefined)).toThrow(reason);
  expect(() => parseRemoteAddress(url, undefined)).not.toThrow("secret");
});

test("two different tokens are refused", () => {
  expect(() => parseRemoteAddress("libsql://shop.turso.io?authToken=one", "two")).toThrow("pass only one of them");
});
