/** The command: a campaign on each chosen database, and its result. See scripts/torture.mjs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { OwnServer } from "../../scripts/servers.mjs";
import { Campaign, type Outcome } from "./campaign.js";
import { faultsOf } from "./faults.js";
import { LimitCampaign } from "./limits/limit-campaign.js";
import { runScheduleCampaign } from "./schedules/schedule-campaign.js";
import { type StoreName, storeNames } from "./stores.js";

interface Servers {
  readonly postgres: () => Promise<OwnServer>;
  readonly mysql: () => Promise<OwnServer>;
}

interface Choice {
  readonly stores: readonly StoreName[];
  readonly minutes: number;
  readonly seed: number;
  /** Only these faults; by default all faults that the store supports. */
  readonly faults: readonly string[] | null;
  /** Schedules of every second under kills, instead of everything else. */
  readonly schedules: boolean;
  /** Runs with limits under kills, stops and releases, instead of everything else. */
  readonly limits: boolean;
}

const usage =
  "npm run torture -- [--store sqlite|postgres|mysql] [--minutes 5] [--seed N] [--faults kill,cut,… | --schedules | --limits]";
/** More problems of one kind add no information. */
const shownPerInvariant = 10;

/** @returns the exit code */
export async function torture(args: readonly string[], servers: Servers): Promise<number> {
  const choice = readChoice(args);
  if (choice === null) {
    console.error(`Usage: ${usage}`);
    return 2;
  }
  let isClean = true;
  for (const store of choice.stores) {
    const campaign = choice.schedules ? tortureSchedules : choice.limits ? tortureLimits : tortureOne;
    isClean = (await campaign(store, choice, servers)) && isClean;
  }
  return isClean ? 0 : 1;
}

function readChoice(args: readonly string[]): Choice | null {
  try {
    const text = { type: "string" } as const;
    const flag = { type: "boolean" } as const;
    const options = { store: text, minutes: text, seed: text, faults: text, schedules: flag, limits: flag } as const;
    const { values } = parseArgs({ args: [...args], options });
    const { schedules = false, limits = false } = values;
    const minutes = Number(values.minutes ?? (schedules || limits ? 2 : 5));
    const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
    const stores = values.store === undefined ? storeNames : storeNames.filter((name) => name === values.store);
    const faults = values.faults?.split(",") ?? null;
    const isKnown = (fault: string) => stores.some((store) => faultsOf(store).some((kind) => kind === fault));
    const isGood = minutes > 0 && Number.isSafeInteger(seed) && stores.length > 0 && (faults ?? []).every(isKnown);
    return isGood ? { stores, minutes, seed, faults, schedules, limits } : null;
  } catch {
    return null;
  }
}

async function tortureOne(store: StoreName, choice: Choice, servers: Servers): Promise<boolean> {
  const { minutes, seed } = choice;
  const faults = faultsOf(store).filter((kind) => choice.faults?.includes(kind) ?? true);
  const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${store}: ${text}`);
  const folder = mkdtempSync(join(tmpdir(), `pawl-torture-${store}-`));
  say(`seed ${seed}; ledger and logs are in ${folder}`);
  const server = store === "sqlite" ? null : await servers[store]();
  const campaign = new Campaign({ store, seed, minutes, folder, server, faults, say });
  try {
    const outcome = await campaign.run();
    const isClean = report(outcome, say);
    say(isClean ? "Nothing is lost, nothing is doubled." : `To repeat it: ${commandOf(store, choice)}`);
    if (isClean) rmSync(folder, { recursive: true, force: true });
    else keep(outcome, folder);
    return isClean;
  } finally {
    await campaign.close();
    await server?.remove();
  }
}

const commandOf = (store: StoreName, { minutes, seed, faults, schedules, limits }: Choice) =>
  `npm run torture -- --store ${store} --minutes ${minutes} --seed ${seed}${faults === null ? "" : ` --faults ${faults}`}${schedules ? " --schedules" : ""}${limits ? " --limits" : ""}`;

async function tortureSchedules(store: StoreName, choice: Choice, servers: Servers): Promise<boolean> {
  const { minutes, seed } = choice;
  const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${store}: ${text}`);
  const folder = mkdtempSync(join(tmpdir(), `pawl-torture-schedules-${store}-`));
  const server = store === "sqlite" ? null : await servers[store]();
  try {
    const url = server?.url ?? `sqlite:${join(folder, "pawl.sqlite")}`;
    const judgement = await runScheduleCampaign({ url, server, folder, seed, minutes, say });
    const { violations, instants, outcomes } = judgement;
    say(`${instants} instants: ${[...outcomes].map(([outcome, count]) => `${count} × ${outcome}`).join(", ")}.`);
    for (const violation of violations.slice(0, 5 * shownPerInvariant)) say(`VIOLATION: ${violation}`);
    say(`${violations.length} violations`);
    if (violations.length === 0) rmSync(folder, { recursive: true, force: true });
    else say(`Logs are in ${folder}. To repeat it: ${commandOf(store, choice)}`);
    return violations.length === 0;
  } finally {
    await server?.remove();
  }
}

async function tortureLimits(store: StoreName, choice: Choice, servers: Servers): Promise<boolean> {
  const { minutes, seed } = choice;
  const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${store}: ${text}`);
  const folder = mkdtempSync(join(tmpdir(), `pawl-torture-limits-${store}-`));
  const server = store === "sqlite" ? null : await servers[store]();
  try {
    const url = server?.url ?? `sqlite:${join(folder, "pawl.sqlite")}`;
    const outcome = await new LimitCampaign({ url, server, folder, seed, minutes, say }).run();
    const { violations, faults, admissions, filledLanes, longestWait, mostPerOther } = outcome;
    say(`faults: ${[...faults].map(([kind, count]) => `${count} × ${kind}`).join(", ")}`);
    say(`${admissions} admissions, ${filledLanes} of them took the last slot of a lane.`);
    say(`No class had to watch more than ${longestWait} admissions, and more than ${mostPerOther} of one other class.`);
    const missing = [...faults].filter(([, count]) => count === 0).map(([kind]) => kind);
    if (missing.length > 0) say(`FAILED: these faults never hit anything: ${missing.join(", ")}.`);
    for (const violation of violations.slice(0, 5 * shownPerInvariant)) say(`VIOLATION: ${violation}`);
    say(`${violations.length} violations`);
    const isClean = violations.length === 0 && missing.length === 0;
    if (isClean) rmSync(folder, { recursive: true, force: true });
    else say(`Logs are in ${folder}. To repeat it: ${commandOf(store, choice)}`);
    return isClean;
  } finally {
    await server?.remove();
  }
}

function report(outcome: Outcome, say: (text: string) => void): boolean {
  const { violations, notes, faults, records, drained, snapshots, commands } = outcome;
  const events = [...records.logs.values()].reduce((sum, log) => sum + log.length, 0);
  say(`${records.runs.size} runs, ${events} events, ${commands} starts and commands, ${snapshots} snapshots.`);
  say(`faults: ${[...faults].map(([kind, count]) => `${count} × ${kind}`).join(", ")}`);
  const missing = [...faults].filter(([, count]) => count === 0).map(([kind]) => kind);
  if (missing.length > 0) say(`FAILED: these faults never hit anything: ${missing.join(", ")}.`);
  for (const { run, text } of notes.slice(0, shownPerInvariant)) say(`note on run ${run}: ${text}`);
  const byInvariant = new Map<string, number>();
  for (const { invariant, run, text } of violations) {
    const count = (byInvariant.get(invariant) ?? 0) + 1;
    byInvariant.set(invariant, count);
    if (count <= shownPerInvariant) say(`VIOLATION ${invariant}${run === null ? "" : ` of run ${run}`}: ${text}`);
  }
  for (const [run, explanation] of [...drained.explanations].slice(0, shownPerInvariant))
    say(`run ${run}: ${explanation}`);
  const counts = [...byInvariant].map(([invariant, count]) => `${count} × ${invariant}`).join(", ");
  say(violations.length === 0 ? "0 violations" : `${violations.length} violations: ${counts}`);
  return violations.length === 0 && missing.length === 0;
}

/** The evidence of the checker, for later inspection. */
function keep({ violations, records }: Outcome, folder: string): void {
  const write = (name: string, lines: Iterable<unknown>) =>
    writeFileSync(join(folder, name), [...lines].map((line) => `${JSON.stringify(line)}\n`).join(""));
  write("violations.jsonl", violations);
  write("runs.jsonl", records.runs.values());
  write("tasks.jsonl", records.tasks);
  write("logs.jsonl", records.logs);
  write("rows.jsonl", records.userRows);
  write("inbox.jsonl", records.inbox);
}
