/**
 * Prints what a worker does: on a terminal one status line, elsewhere a line for each run that ends, with --json a line
 * of JSON for each. With --quiet it prints only when the worker starts and stops.
 */

import type { ErrorContext } from "../define/definition.js";
import type { Timer } from "../runtime/runtime.js";
import { systemRuntime } from "../runtime/system.js";
import type { RunRecord, Store, TerminalStatus } from "../store/contract/store.js";
import { sentenceOf } from "./cli-error.js";
import { LiveLine } from "./live-line.js";
import type { Output } from "./output.js";
import { colourOf } from "./paint.js";
import type { RunEnd } from "./run-ends.js";
import { printable } from "./table.js";
import { durationText } from "./times.js";

export interface ReportOptions {
  readonly quiet: boolean;
  /** Print a line for each run on a terminal, too. */
  readonly eachRun: boolean;
}

/**
 * The interval at which the status line is redrawn: often enough to look alive, seldom enough to cost almost nothing.
 */
const redrawMs = 500;
/** The displayed rate covers the last five seconds, which are ten redraws. */
const maxRateSamples = 10;
const readBatchSize = 500;

export class WorkerReport {
  readonly #out: Output;
  readonly #listsRuns: boolean;
  readonly #reportsErrors: boolean;
  readonly #line: LiveLine | null;
  readonly #endedCounts: Record<TerminalStatus, number> = { completed: 0, failed: 0, canceled: 0 };
  readonly #rateSamples: { readonly at: number; readonly ended: number }[] = [];
  /** Ended runs that have not been printed yet. */
  readonly #unreportedRunIds: string[] = [];
  #timer: Timer | null = null;
  #reporting: Promise<void> | null = null;

  constructor(out: Output, { quiet, eachRun }: ReportOptions) {
    this.#out = out;
    this.#reportsErrors = !quiet;
    this.#line = out.isTerminal && !out.json && !quiet ? new LiveLine(out.stdout) : null;
    this.#listsRuns = !quiet && (this.#line === null || eachRun);
  }

  /** @param countActiveRuns returns how many runs the worker executes */
  start(countActiveRuns: () => number): void {
    if (this.#line === null) return;
    const draw = () => this.#line?.set(this.#summary(countActiveRuns()));
    this.#timer = systemRuntime.setInterval(draw, redrawMs);
    draw();
  }

  /** Waits until all ended runs are printed, then draws the status line for the last time. */
  async end(): Promise<void> {
    systemRuntime.clearInterval(this.#timer);
    await this.#reporting;
    this.#line?.set(this.#summary(0));
    this.#line?.end();
  }

  get endedCounts(): Readonly<Record<TerminalStatus, number>> {
    return this.#endedCounts;
  }

  /** Prints an event above the status line. */
  printEvent(event: object, text: () => string): void {
    this.#writeAbove(() => this.#out.event(event, text));
  }

  note(text: string): void {
    this.#writeAbove(() => this.#out.note(text));
  }

  runEnded({ runId, status }: RunEnd, store: Pick<Store, "runsById">): void {
    this.#endedCounts[status] += 1;
    if (!this.#listsRuns) return;
    this.#unreportedRunIds.push(runId);
    this.#reporting ??= this.#printRunEnds(store);
  }

  stepFailed(error: unknown, { runId, workflowName, step, attempt }: ErrorContext): void {
    if (!this.#reportsErrors) return;
    const event = { event: "step.failed", runId, workflow: workflowName, step, attempt, error };
    const details = `${workflowName} ${runId}  ${step}${attempt === 1 ? "" : ` #${attempt}`}: ${sentenceOf(error)}`;
    this.printEvent(event, () => `${this.#out.paint("yellow", "step failed")}  ${printable(details)}`);
  }

  /** Reads the ended runs in batches: a run that ends during a read is in the next batch. */
  async #printRunEnds(store: Pick<Store, "runsById">): Promise<void> {
    // Runs that end in the same commit are published in the same tick, so waiting for a tick collects all of them.
    await Promise.resolve();
    while (this.#unreportedRunIds.length > 0) {
      const ids = this.#unreportedRunIds.splice(0, readBatchSize);
      try {
        const runs = new Map((await store.runsById(ids)).map((run) => [run.id, run]));
        for (const id of ids) this.#printRunEnd(runs.get(id));
      } catch (error) {
        this.note(`warning: ${ids.length} runs ended, but could not be read: ${sentenceOf(error)}`);
      }
    }
    this.#reporting = null;
  }

  #printRunEnd(run: RunRecord | undefined): void {
    // The run has been pruned already.
    if (run === undefined) return;
    const { id, workflow, status, startedAt, finishedAt } = run;
    const ms = startedAt === null || finishedAt === null ? null : finishedAt - startedAt;
    const event = { event: "run.ended", runId: id, workflow, status, ms };
    const took = ms === null ? "" : `  ${durationText(ms)}`;
    this.printEvent(
      event,
      () => `${this.#out.paint(colourOf(status), status.padEnd(11))}  ${printable(workflow)} ${id}${took}`,
    );
  }

  #writeAbove(write: () => void): void {
    if (this.#line === null) write();
    else this.#line.writeAbove(write);
  }

  #summary(active: number): string {
    const { completed, failed, canceled } = this.#endedCounts;
    const parts = [
      `${number(completed)} completed`,
      ...(failed === 0 ? [] : [`${number(failed)} failed`]),
      ...(canceled === 0 ? [] : [`${number(canceled)} canceled`]),
      `${number(active)} active`,
      `${number(this.#rate(completed + failed + canceled))}/s`,
    ];
    return parts.join(" · ");
  }

  #rate(ended: number): number {
    const now = this.#out.now();
    this.#rateSamples.push({ at: now, ended });
    if (this.#rateSamples.length > maxRateSamples) this.#rateSamples.shift();
    const [first] = this.#rateSamples;
    const ms = now - (first?.at ?? now);
    return ms <= 0 ? 0 : Math.round(((ended - (first?.ended ?? 0)) * 1_000) / ms);
  }
}

const number = (value: number) => value.toLocaleString("en");
