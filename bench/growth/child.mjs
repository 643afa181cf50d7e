// Child processes of the benchmark: how they are started, and how both sides communicate. Every message has a `kind`.

import { fork } from "node:child_process";
import { once } from "node:events";

/** The system's monotonic clock: the same in every process. */
export const nowMs = () => Number(process.hrtime.bigint()) / 1e6;

export function startProcess(url, args) {
  const child = fork(url, args.map(String));
  const heard = [];
  const listeners = new Set();
  let exitCode;
  const look = () => {
    for (const listener of listeners) listener();
  };
  child.on("message", (message) => {
    heard.push(message);
    look();
  });
  child.on("exit", (code, signal) => {
    exitCode = code ?? signal;
    look();
  });

  /** The next message of this kind; rejects if the process ends before it sends one. */
  const next = (kind) =>
    new Promise((resolve, reject) => {
      const listener = () => {
        const index = heard.findIndex((message) => message.kind === kind);
        if (index < 0 && exitCode === undefined) return;
        listeners.delete(listener);
        if (index >= 0) resolve(heard.splice(index, 1)[0]);
        else reject(new Error(`${nameOf(url)} ended (${exitCode}) before it said "${kind}".`));
      };
      listeners.add(listener);
      listener();
    });

  /** The latest message of this kind, if there is one; it and the earlier ones count as read. */
  const latest = (kind) => {
    if (exitCode !== undefined) throw new Error(`${nameOf(url)} has ended (${exitCode}).`);
    const found = heard.filter((message) => message.kind === kind);
    for (const message of found) heard.splice(heard.indexOf(message), 1);
    return found.at(-1);
  };

  const end = async (how) => {
    if (exitCode !== undefined) return;
    how();
    await once(child, "exit");
  };
  return {
    next,
    latest,
    say: (kind, data) => child.send({ kind, ...data }),
    stop: () => end(() => child.send({ kind: "stop" })),
    /**
     * Kills the process as the kernel would when memory runs out: nothing is written, and no other process is notified.
     */
    kill: () => end(() => child.kill("SIGKILL")),
  };
}

const nameOf = (url) => url.pathname.split("/").at(-1);

/** In the child: sends a message to the parent process. */
export const tell = (kind, data) => process.send?.({ kind, ...data });

/** The parent may be killed, and then no process would be left to stop this one. */
export function listen(handlers) {
  process.on("message", async ({ kind, ...data }) => {
    try {
      await handlers[kind]?.(data);
    } catch (error) {
      console.error(error);
      process.exit(1);
    }
    if (kind === "stop") process.disconnect();
  });
  process.on("disconnect", () => process.exit());
}
