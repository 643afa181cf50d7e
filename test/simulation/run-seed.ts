/** Runs the world of one seed and judges it. */
import { findViolations } from "./checker.js";
import { type Counts, countCoverage } from "./coverage.js";
import { collectEvidence, type Violation } from "./evidence.js";
import type { FaultRates } from "./kernel/faults.js";
import { Trace } from "./kernel/trace.js";
import { World } from "./world.js";

export interface SeedOptions {
  readonly seed: number;
  readonly keepsTrace?: boolean;
  /** Items of the plan that are left out. */
  readonly dropped?: ReadonlySet<string>;
  /** Kinds of faults that are left out. */
  readonly withoutFaults?: ReadonlySet<string>;
  /** Only so many faults of calls and hints are injected. */
  readonly maxFaults?: number;
  /** How often kinds of faults are injected, instead of as often as the seed says. */
  readonly rates?: FaultRates;
}

export interface SeedResult {
  readonly seed: number;
  /** The rates that it was simulated with, if they were not those of the seed. */
  readonly rates?: FaultRates;
  readonly violations: readonly Violation[];
  /** The same for two worlds in which the same happened. */
  readonly hash: string;
  readonly trace: readonly string[];
  readonly coverage: Counts;
  readonly events: number;
  readonly faults: number;
  /** The items of the plan that can be left out. */
  readonly items: readonly string[];
}

export async function runSeed(options: SeedOptions): Promise<SeedResult> {
  const { seed, dropped, withoutFaults, maxFaults, rates, keepsTrace = false } = options;
  const hasRates = rates !== undefined && Object.keys(rates).length > 0;
  const trace = new Trace({ keepsLines: keepsTrace });
  const faults = {
    ...(withoutFaults === undefined ? {} : { without: withoutFaults }),
    ...(maxFaults === undefined ? {} : { limit: maxFaults }),
    ...(hasRates ? { rates } : {}),
  };
  const world = new World({ seed, trace, faults, ...(dropped === undefined ? {} : { dropped }) });
  await world.run();
  const evidence = await collectEvidence(world);
  return {
    seed,
    ...(hasRates ? { rates } : {}),
    violations: findViolations(evidence),
    hash: trace.hash,
    trace: trace.lines,
    coverage: countCoverage(world, evidence),
    events: world.scheduler.eventCount,
    faults: world.faults.count,
    items: world.items,
  };
}
