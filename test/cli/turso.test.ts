/**
 * A libSQL server that requires a token: where the commands find the token, and what `init` writes for a Turso
 * application.
 */
import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@libsql/client/ws";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OwnServer, ownSqld } from "../../scripts/servers.mjs";
import { isLeftOut } from "../support/databases.js";
import { newFolder } from "./command-line.js";

describe.skipIf(isLeftOut("sqld"))("a libSQL server", () => {
  const keys = mkdtempSync(join(tmpdir(), "pawl-keys-"));
  let server: OwnServer;
  let authToken: string;

  beforeAll(async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const key = join(keys, "key.pem");
    writeFileSync(key, publicKey.export({ type: "spki", format: "pem" }));
    const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const head = `${encoded({ alg: "EdDSA", typ: "JWT" })}.${encoded({ a: "rw" })}`;
    authToken = `${head}.${sign(null, Buffer.from(head), privateKey).toString("base64url")}`;
    server = await ownSqld({ args: ["--auth-jwt-key-file", key], token: authToken });
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(keys, { recursive: true, force: true });
  });

  test("takes its token from the environment, the configuration or the URL, and the token is never shown", async () => {
    const folder = newFolder();
    await folder.text("migrate", "--url", `${server.url}?authToken=${authToken}`);
    const runs = ["runs", "--url", server.url] as const;
    expect(await folder.error(...runs)).toContain("requires a token");
    for (const name of ["PAWL_AUTH_TOKEN", "TURSO_AUTH_TOKEN"]) {
      expect((await folder.pawlWith({ env: { [name]: authToken } }, ...runs)).stdout).toBe("No runs.\n");
    }
    folder.write("pawl.config.json", JSON.stringify({ url: server.url, authToken }));
    expect(await folder.text("runs")).toBe("No runs.\n");
    const { stdout, stderr } = await folder.pawl("doctor");
    expect(stdout).toContain("@libsql/client");
    expect(`${stdout}${stderr}`).not.toContain(authToken);
  });

  test("is found by pawl init through Turso's variables; init reads its tables and writes no token to a file", async () => {
    const client = createClient({ url: server.url, authToken });
    await client.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)");
    client.close();
    const folder = newFolder();
    folder.write("package.json", '{ "dependencies": { "pawl": "*", "@libsql/client": "*" } }');
    folder.write(".env", `TURSO_DATABASE_URL=${server.url}\nTURSO_AUTH_TOKEN=${authToken}\n`);
    const text = await folder.text("init");
    expect(text).toContain("TURSO_DATABASE_URL in .env");
    expect(text).toContain("users");
    expect(text).not.toContain(authToken);
    const config = readFileSync(join(folder.path, "pawl.config.mjs"), "utf8");
    expect(config).toContain("url: process.env.TURSO_DATABASE_URL");
    expect(config).toContain("authToken: process.env.TURSO_AUTH_TOKEN");
    expect(config).not.toContain(authToken);
  });
});
