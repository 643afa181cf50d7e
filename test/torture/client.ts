/**
 * A client of a campaign, in a process of its own: it starts runs of all kinds and sends commands as an operator would.
 * It notes every command and its answer in its ledger. It has no workflow code.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type RunHandle } from "pawl";
import { seeded } from "../support/seeded-random.js";
import { type CommandName, type Intent, LedgerWriter } from "./ledger.js";
import type { Order, ProcessOptions } from "./messages.js";
import { chooseStart, signalNames } from "./starts.js";
import { timedLogger } from "./timed-logger.js";

const { url, ledger: folder, name, seed } = JSON.parse(process.argv[2] as string) as ProcessOptions;
const ledger = new LedgerWriter(folder, name);
const random = seeded(seed);
/** Commands on a frozen connection are never answered, so their number must be limited. */
const maxInFlight = 200;
let inFlight = 0;
let mayStart = true;
let count = 0;

process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());
const pawl = await connect(url, { logger: timedLogger });

process.on("message", (order: Order) => {
  if (order.kind === "pace") mayStart = order.mayStart;
  else if (order.kind === "command") void operate(order);
  else void pawl.close().then(() => process.disconnect());
});
process.send?.({ kind: "ready" });
void startForever();

async function startForever(): Promise<void> {
  for (;;) {
    await sleep(80 + random() * 240);
    if (mayStart && inFlight < maxInFlight) void startOne();
  }
}

/** A client that does not know whether its start was carried out retries with the same key. */
async function startOne(): Promise<void> {
  const start = chooseStart(random);
  count += 1;
  const key = `${name}-${process.pid}-${count}`;
  for (let tries = 0; tries < 3; tries += 1) {
    const run = await noted({ command: "start", workflow: start.workflow, key }, () => start.send(pawl, key));
    if (run === null) continue;
    process.send?.({ kind: "started", run: run.id, workflow: start.workflow });
    await signalSome(run.id, start.workflow);
    return;
  }
}

/** Sends signals that the run waits for, one after the other, some of them twice. */
async function signalSome(run: string, workflow: string): Promise<void> {
  for (const signal of signalNames(workflow, random)) {
    await sleep(random() * 800);
    const key = `sig-${name}-${process.pid}-${++count}`;
    const send = () => noted({ command: "signal", run, signal, key }, () => pawl.run(run).signal(signal, key, { key }));
    await Promise.all(random() < 0.2 ? [send(), send()] : [send()]);
  }
}

async function operate({ command, run }: Extract<Order, { kind: "command" }>): Promise<void> {
  if (inFlight >= maxInFlight) return;
  const handle = pawl.run(run);
  const key = `op-${name}-${process.pid}-${++count}`;
  const signal = "go";
  const acts: Record<typeof command, () => Promise<void>> = {
    pause: () => handle.pause(key),
    resume: () => handle.resume(),
    skip: () => handle.skip(),
    cancel: () => handle.cancel(key),
    signal: () => handle.signal(signal, key, { key }),
  };
  await noted({ command, run, key, ...(command === "signal" ? { signal } : {}) }, acts[command]);
}

/** Sends a command between two entries of the ledger. Returns its result, or null when it failed. */
async function noted<Given>(
  what: Partial<Intent> & { readonly command: CommandName },
  send: () => Promise<Given>,
): Promise<Given | null> {
  const id = `${name}-${process.pid}-${++count}`;
  inFlight += 1;
  ledger.write({ kind: "intent", id, workflow: null, run: null, signal: null, key: null, ...what, at: Date.now() });
  const answer = (kind: "acknowledged" | "refused" | "unknown", run: string | null, error: string | null) =>
    ledger.write({ kind: "answer", id, answer: kind, run, error, at: Date.now() });
  try {
    const given = await send();
    answer("acknowledged", (given as RunHandle | undefined)?.id ?? null, null);
    return given;
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string };
    // After a store error the command may or may not have been carried out; every other error is an answer of the
    // library.
    const isUnknown = code === undefined || code === "STORE_ERROR" || code === "TIMEOUT";
    answer(isUnknown ? "unknown" : "refused", null, `${code}: ${message}`);
    return null;
  } finally {
    inFlight -= 1;
  }
}
