/** The faults of a campaign, in an order that is determined by its seed. Each reports whether it hit anything. */
import { setTimeout as sleep } from "node:timers/promises";
import type { OwnServer } from "../../scripts/servers.mjs";
import type { Member } from "./fleet.js";
import type { LedgerWriter } from "./ledger.js";
import type { StoreName } from "./stores.js";

export type FaultKind =
  | "kill"
  | "kill-client"
  | "stop"
  | "lock"
  | "cut"
  | "cut-after-commit"
  | "stall"
  | "half-close"
  | "swallow"
  | "crash"
  | "swallow-all";

export const faultsOf = (store: StoreName): readonly FaultKind[] =>
  store === "sqlite"
    ? ["kill", "kill-client", "stop", "lock"]
    : ["kill", "kill-client", "stop", "cut", "cut-after-commit", "stall", "half-close", "swallow", "crash", lastFault];

/**
 * Hits all connections of all workers as the last fault of a campaign: if it froze the workers, no run would ever end.
 */
export const lastFault = "swallow-all";

export interface Target {
  readonly workers: readonly Member[];
  readonly clients: readonly Member[];
  readonly server: OwnServer | null;
  readonly ledger: LedgerWriter;
  readonly random: () => number;
  readonly leaseMs: number;
  /** SQLite: holds the write lock. */
  holdWriteLock(ms: number): Promise<void>;
  /** No snapshot is read while this runs. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

/** Resolves when the next fault may come, with whether this one hit anything. */
export function inject(kind: FaultKind, target: Target): Promise<boolean> {
  const { ledger } = target;
  const note = (pid: number | null, ms: number) =>
    ledger.write({ kind: "fault", fault: kind, pid, at: Date.now(), until: Date.now() + ms });
  return actions[kind](target, note);
}

type Note = (pid: number | null, ms: number) => void;
type Action = (target: Target, note: Note) => Promise<boolean>;

const actions: Record<FaultKind, Action> = {
  kill: (target, note) => killOne(target, target.workers, note),
  "kill-client": (target, note) => killOne(target, target.clients, note),
  stop: async (target, note) => {
    const victim = oneOf(target, target.workers);
    if (victim === undefined) return false;
    const ms = 3 * target.leaseMs;
    note(victim.pid, ms);
    const { pid } = victim;
    victim.freeze();
    setTimeout(() => victim.pid === pid && victim.thaw(), ms);
    return true;
  },
  lock: async (target, note) => {
    const ms = 1_000 + target.random() * 4_000;
    note(null, ms);
    await target.holdWriteLock(ms);
    return true;
  },
  cut: onConnections(({ proxy }) => proxy?.cut() ?? 0, 0),
  swallow: onConnections(({ proxy }) => proxy?.swallow() ?? 0, 30_000),
  "swallow-all": async ({ workers }, note) => {
    note(null, 30_000);
    return workers.map(({ proxy }) => proxy?.swallow() ?? 0).some((count) => count > 0);
  },
  stall: (target, note) => {
    const ms = 500 + target.random() * 2.5 * target.leaseMs;
    return onConnections(({ proxy }) => proxy?.stall(ms) ?? 0, ms)(target, note);
  },
  "half-close": (target, note) => {
    const direction = target.random() < 0.5 ? "client" : "server";
    return onConnections(({ proxy }) => proxy?.halfClose(direction) ?? 0, 10_000)(target, note);
  },
  "cut-after-commit": async (target, note) => {
    const victim = oneOf(target, [...target.workers, ...target.clients]);
    if (victim?.proxy == null) return false;
    note(victim.pid, 2_000);
    return victim.proxy.loseAnswerToCommit(2_000);
  },
  crash: async ({ server, alone }, note) => {
    if (server === null) return false;
    note(null, 3_000);
    await alone(() => server.restartImmediate());
    return true;
  },
};

function onConnections(hit: (victim: Member) => number, ms: number): Action {
  return async (target, note) => {
    const victim = oneOf(target, target.random() < 0.75 ? target.workers : target.clients);
    if (victim === undefined) return false;
    note(victim.pid, ms);
    return hit(victim) > 0;
  };
}

async function killOne(target: Target, members: readonly Member[], note: Note): Promise<boolean> {
  const victim = oneOf(target, members);
  if (victim === undefined) return false;
  note(victim.pid, 0);
  await victim.kill();
  await sleep(target.random() * 1_000);
  await Promise.race([victim.start(), sleep(10_000)]);
  return true;
}

function oneOf({ random }: Target, members: readonly Member[]): Member | undefined {
  const running = members.filter(({ isStopped }) => !isStopped);
  return running[Math.floor(random() * running.length)];
}

/** Every kind once, and kills twice, in random order, then again: even a short campaign has them all. */
export function* faultOrder(kinds: readonly FaultKind[], random: () => number): Generator<FaultKind, never> {
  for (;;) {
    const bag = [...kinds, ...kinds.filter((kind) => kind === "kill")];
    while (bag.length > 0) yield bag.splice(Math.floor(random() * bag.length), 1)[0] as FaultKind;
  }
}
