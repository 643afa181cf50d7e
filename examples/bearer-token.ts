/** An `authorize` for `httpHandler`: requests that carry the secret token are let in. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Authorization } from "pawl/http";

/** @param token the secret of the server and its clients; `openssl rand -hex 32` makes one */
export function bearerToken(token: string, authorization: Authorization) {
  if (token.length < 32) throw new Error("Set PAWL_TOKEN to a secret of at least 32 characters: openssl rand -hex 32");
  const expected = sha256(`Bearer ${token}`);
  return (request: Request): Authorization | null => {
    const given = sha256(request.headers.get("authorization") ?? "");
    // Takes the same time wherever the two differ, so that an attacker cannot find the token byte by byte. It needs values of the
    // same length, and hashes are.
    return timingSafeEqual(given, expected) ? authorization : null;
  };
}

const sha256 = (text: string) => createHash("sha256").update(text).digest();
