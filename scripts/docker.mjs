// A database server in a container, where a Docker engine is available.

import { setTimeout as sleep } from "node:timers/promises";
import { capture } from "./run.mjs";

/** Starts `engine.docker` on a free port: `{ port, remove }`, or `{ why }` on failure. */
export async function startContainer(engine) {
  const { image, port, env } = engine.docker;
  try {
    await capture("docker", ["info"], { timeout: 10_000 });
  } catch {
    return { why: "no Docker engine answers" };
  }
  let id;
  const remove = () => capture("docker", ["rm", "--force", "--volumes", id]);
  try {
    const settings = Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
    const args = ["run", "-d", "--rm", "-p", `127.0.0.1::${port}`, ...settings, image];
    id = (await capture("docker", args, { timeout: 600_000 })).trim();
    const published = Number((await capture("docker", ["port", id, `${port}/tcp`])).trim().split(":").at(-1));
    await untilItAnswers(engine, published);
    return { port: published, remove };
  } catch (error) {
    if (id) await remove().catch(() => {});
    return { why: `Docker could not start ${image} (${error.message.trim().split("\n").at(-1)})` };
  }
}

/** Images start their server once to set it up and stop it again, so only a connection that stays open counts. */
async function untilItAnswers(engine, port) {
  const url = engine.url({ user: engine.adminUser, port });
  let inARow = 0;
  for (const giveUpAt = Date.now() + 120_000; inARow < 3; await sleep(500)) {
    if (Date.now() > giveUpAt) throw new Error(`it does not answer on port ${port}`);
    const connection = await engine.connect(url).catch(() => undefined);
    inARow = connection ? inARow + 1 : 0;
    await connection?.close();
  }
}
