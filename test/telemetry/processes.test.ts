/** Independent processes create the spans of one run, and these form one tree. */
import { connect } from "pawl";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { isAmong } from "../support/effort.js";
import { killAllProcesses, LibraryProcess } from "../support/library-process.js";
import { treeOf } from "../support/spans.js";
import { silent } from "../support/virtual-worlds.js";
import type { PlainSpan } from "./programs/plain-span.mjs";

interface Message {
  readonly kind: "ready" | "hangs" | "spans" | "last spans";
  readonly spans: readonly PlainSpan[];
}

/** See programs/traced-worker.mjs. */
class TracedWorker extends LibraryProcess {
  readonly ready = this.#hears("ready");
  /** Resolves when the process executes the step that never ends, and the log says so. */
  readonly hangs = this.#hears("hangs");

  constructor(options: { url: string; workflows: readonly string[]; hangs?: boolean }) {
    super("telemetry/programs/traced-worker", options);
  }

  spans(): Promise<readonly PlainSpan[]> {
    const answer = this.#hears("spans");
    this.child.send("spans");
    return answer;
  }

  /** Stops the process and returns all its spans. */
  async stop(): Promise<readonly PlainSpan[]> {
    const answer = this.#hears("last spans");
    this.child.send("stop");
    const spans = await answer;
    expect(await this.exited).toEqual({ code: 0, signal: null });
    return spans;
  }

  #hears(kind: Message["kind"]): Promise<readonly PlainSpan[]> {
    return this.told((message: Message) => (message.kind === kind ? (message.spans ?? []) : undefined));
  }
}

afterEach(() => killAllProcesses());

forEachStore(
  (kind) => {
    test("the spans of a run, its children and grandchildren, from four processes of which one is killed, form one tree", async () => {
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const pawl = await connect(url, { logger: silent });
      onTestFinished(() => pawl.close());
      for (const name of ["tree", "branch", "leaf"]) await pawl.createWorkflow(name);
      const branches = new TracedWorker({ url, workflows: ["branch"] });
      const leaves = new TracedWorker({ url, workflows: ["leaf"] });
      const first = new TracedWorker({ url, workflows: ["tree"], hangs: true });
      await Promise.all([branches.ready, leaves.ready, first.ready]);

      const run = await pawl.workflow<null, number[]>("tree").trigger(null);
      await first.hangs;
      const before = await first.spans();
      await first.kill();
      const second = new TracedWorker({ url, workflows: ["tree"] });
      expect([...(await run.result())]).toEqual([2, 4, 6, 8]);
      const elsewhere = [...(await branches.stop()), ...(await leaves.stop())];
      const after = await second.stop();

      const died = "The worker that executed it died.";
      const branch = [
        "  run branch: completed",
        "    run leaf: completed",
        "      step double 1: success",
        "    step flaky 1: reattempted_by_exception (once)",
        "    step flaky 2: success",
      ];
      const all = [...before, ...elsewhere, ...after];
      expect(treeOf(all)).toEqual([
        "run tree: completed",
        ...[...branch, ...branch, ...branch],
        "  run leaf: completed",
        "    step double 1: success",
        "  step plan 1: success",
        `  step sign 1: abandoned (${died})`,
        "  step sign 2: success",
      ]);
      expect(new Set(all.map(({ traceId }) => traceId))).toEqual(new Set([run.id.replaceAll("-", "")]));
      expect(new Set(all.map(({ spanId }) => spanId)).size).toBe(all.length);
      // Each process created the spans whose end it saw: the killed one a step, the last one the run that the first had
      // started.
      expect(before.map(({ name }) => name)).toEqual(["step plan"]);
      expect(after.map(({ name }) => name)).toEqual(["step sign", "step sign", "run tree"]);
      const { startedAt, finishedAt } = await run.get();
      expect(after.find(({ name }) => name === "run tree")).toMatchObject({
        startMs: startedAt?.getTime(),
        endMs: finishedAt?.getTime(),
      });
    });
  },
  (["sqlite", "postgres", "mysql"] as const).filter((kind) => isAmong(kind, "mysql")),
);
