// Restate's server, which comes with its npm package, on free ports and in a temporary folder. The guardian of the
// tests' database servers ends it when this process ends, however that happens.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const guardian = fileURLToPath(new URL("../../scripts/guardian.mjs", import.meta.url));

export async function startRestateServer(settings) {
  const program = createRequire(import.meta.url).resolve(
    `@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`,
  );
  const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
  const folder = mkdtempSync(join(tmpdir(), "pawl-restate-"));
  const log = join(folder, "log");
  const output = openSync(log, "a");
  const guard = spawn(process.execPath, [guardian, folder, "SIGTERM"], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  // The server gets a process group of its own, because Ctrl-C must not end it before its clients.
  const server = spawn(program, ["--base-dir", join(folder, "data"), "--no-logo"], {
    cwd: folder,
    detached: true,
    stdio: ["ignore", output, output],
    env: {
      ...process.env,
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_BIND_IP: "127.0.0.1",
      RESTATE_BIND_PORT: node,
      RESTATE_INGRESS__BIND_PORT: ingress,
      RESTATE_ADMIN__BIND_PORT: admin,
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_LOG_FILTER: "warn",
      ...settings,
    },
  });
  guard.stdin.write(`${server.pid}\n`);
  const adminUrl = `http://127.0.0.1:${admin}`;
  const giveUpAt = Date.now() + 30_000;
  while (!(await answers(`${adminUrl}/health`)) || !(await answers(`http://127.0.0.1:${ingress}/restate/health`))) {
    if (server.exitCode !== null || Date.now() > giveUpAt)
      throw new Error(`Restate's server does not start: ${readFileSync(log, "utf8").trim().split("\n").at(-1)}`);
    await sleep(50);
  }
  return {
    pid: server.pid,
    ingressUrl: `http://127.0.0.1:${ingress}`,
    adminUrl,
    stop: async () => {
      guard.stdin.end();
      await once(guard, "exit");
    },
  };
}

const answers = async (url) => (await fetch(url).catch(() => undefined))?.ok;

export async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
