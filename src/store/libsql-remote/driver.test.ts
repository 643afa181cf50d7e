import { expect, test, vi } from "vitest";

test("without the package @libsql/client, the error says what to install", async () => {
  for (const part of ["ws", "http"]) {
    vi.doMock(`@libsql/client/${part}`, () => {
      throw new Error("Cannot find package '@libsql/client'");
    });
  }
  const { loadClient } = await import("./driver.js");
  for (const usesWebSocket of [true, false]) {
    const loading = loadClient({ url: "", usesWebSocket, authToken: undefined });
    await expect(loading).rejects.toThrow("npm install @libsql/client");
  }
});
