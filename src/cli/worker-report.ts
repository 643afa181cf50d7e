/**
 * What a worker says while it works: on a terminal one line that is kept up to date, elsewhere a line for each run that
 * ends, for programs a line of JSON for each. Quiet, it says when it begins and ends.
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
import { lasting } from "./times.js";

export interface ReportOptions {
  readonly quiet: boolean;
  /** A line for each run also on a terminal. */
  readonly eachRun: boolean;
}

/** Often enough to look alive, seldom enough to cost nothing. */
const redrawMs = 500;
/** The rate is that of the last few seconds. */
const ticksOfRate = 10;
const readAtOnce = 500;

export class WorkerReport {
  readonly #out: Output;
  readonly #listsRuns: boolean;
  readonly #tellsErrors: boolean;
  readonly #line: LiveLine | null;
  readonly #ended: Record<TerminalStatus, number> = { completed: 0, failed: 0, canceled: 0 };
  readonly #ticks: { readonly at: number; readonly ended: number }[] = [];
  /** Runs that have ended, and of which that has not been said yet. */
  readonly #unsaid: string[] = [];
  #timer: Timer | null = null;
  #saying: Promise<void> | null = null;

  constructor(out: Output, { quiet, eachRun }: ReportOptions) {
    this.#out = out;
    this.#tellsErrors = !quiet;
    this.#line = out.isTerminal && !out.json && !quiet ? new LiveLine(out.stdout) : null;
    this.#listsRuns = !quiet && (this.#line === null || eachRun);
  }

  /** @param active how many runs it has in hand */
  begin(active: () => number): void {
    if (this.#line === null) return;
    const draw = () => this.#line?.set(this.#summary(active()));
    this.#timer = systemRuntime.setInterval(draw, redrawMs);
    draw();
  }

  /** Says it when all that came before is said. */
  async end(): Promise<void> {
    systemRuntime.clearInterval(this.#timer);
    await this.#saying;
    this.#line?.set(this.#summary(0));
    this.#line?.end();
  }

  get ended(): Readonly<Record<TerminalStatus, number>> {
    return this.#ended;
  }

  /** A line of its own, above the one that changes. */
  say(event: object, text: () => string): void {
    this.#above(() => this.#out.event(event, text));
  }

  note(text: string): void {
    this.#above(() => this.#out.note(text));
  }

  runEnded({ runId, status }: RunEnd, store: Pick<Store, "runsById">): void {
    this.#ended[status] += 1;
    if (!this.#listsRuns) return;
    this.#unsaid.push(runId);
    this.#saying ??= this.#sayAll(store);
  }

  stepFailed(error: unknown, { runId, workflowName, step, attempt }: ErrorContext): void {
    if (!this.#tellsErrors) return;
    const event = { event: "step.failed", runId, workflow: workflowName, step, attempt, error };
    const what = `${workflowName} ${runId}  ${step}${attempt === 1 ? "" : ` #${attempt}`}: ${sentenceOf(error)}`;
    this.say(event, () => `${this.#out.paint("yellow", "step failed")}  ${printable(what)}`);
  }

  /** Many at a time: what ends while some are read is read with the next. */
  async #sayAll(store: Pick<Store, "runsById">): Promise<void> {
    // What ends in the same commit is told in the same moment.
    await Promise.resolve();
    while (this.#unsaid.length > 0) {
      const ids = this.#unsaid.splice(0, readAtOnce);
      try {
        const runs = new Map((await store.runsById(ids)).map((run) => [run.id, run]));
        for (const id of ids) this.#say(runs.get(id));
      } catch (error) {
        this.note(`warning: ${ids.length} runs ended, but could not be read: ${sentenceOf(error)}`);
      }
    }
    this.#saying = null;
  }

  #say(run: RunRecord | undefined): void {
    // Pruned already.
    if (run === undefined) return;
    const { id, workflow, status, startedAt, finishedAt } = run;
    const ms = startedAt === null || finishedAt === null ? null : finishedAt - startedAt;
    const event = { event: "run.ended", runId: id, workflow, status, ms };
    const took = ms === null ? "" : `  ${lasting(ms)}`;
    this.say(
      event,
      () => `${this.#out.paint(colourOf(status), status.padEnd(11))}  ${printable(workflow)} ${id}${took}`,
    );
  }

  #above(write: () => void): void {
    if (this.#line === null) write();
    else this.#line.above(write);
  }

  #summary(active: number): string {
    const { completed, failed, canceled } = this.#ended;
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
    this.#ticks.push({ at: now, ended });
    if (this.#ticks.length > ticksOfRate) this.#ticks.shift();
    const [first] = this.#ticks;
    const ms = now - (first?.at ?? now);
    return ms <= 0 ? 0 : Math.round(((ended - (first?.ended ?? 0)) * 1_000) / ms);
  }
}

const number = (value: number) => value.toLocaleString("en");
