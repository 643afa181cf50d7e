/** Steps and tasks of a class that name a job, and the ancestry hashes of their outputs. */
import { createHash } from "node:crypto";
import { type JobDefinition, job, Workflow } from "pawl";
import { type TestPawl, testPawl } from "pawl/testing";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { type AnyRun, attemptsOf, expectSound } from "../support/run-checks.js";
import { databaseFor, silent, start } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});

const resize = job("Resize", (args: { file: string }, { node, run, attempt, idempotencyKey }) => {
  executed.push(`${node.name} ${args.file} ${attempt} ${idempotencyKey === `${run.id}:${node.id}`}`);
  return { resized: args.file };
});

class Album extends Workflow<unknown, { files: [string, string] }> {
  static {
    this.step("open", () => {});
    this.task("first", { job: resize, args: { file: "cover.png" }, dependsOn: "open" });
    this.task("second", { job: "Resize", args: (w: Album) => ({ file: w.input.files[1] }), dependsOn: "open" });
    this.step("third", { job: resize, args: async () => ({ file: "late.png" }), alsoDependsOn: ["first", "second"] });
    this.step("close", () => {});
  }
}

async function withJobs(workflows: readonly (typeof Album)[], jobs: readonly JobDefinition[]): Promise<TestPawl> {
  const t = await testPawl({ workflows, jobs, logger: silent });
  onTestFinished(() => t.close());
  return t;
}

const outputsOf = async (run: AnyRun) =>
  Object.fromEntries(
    (await run.history())
      .filter(({ type }) => type === "step.completed")
      .map(({ node, data }) => [node, data.output] as const),
  );

forMemoryAnd("postgres", (kind) => {
  const database = databaseFor(kind);

  test("a job runs on the worker that has it, with the arguments of its node, and its return value is the node's output", async () => {
    const w = await database.world();
    await w.worker([Album]);
    await w.worker([], { jobs: [resize] });
    const run = await w.pawl.start(Album, { files: ["a.png", "b.png"] });
    await w.settleAll();
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["first cover.png 1 true", "second b.png 1 true", "third late.png 1 true"]);
    expect(await outputsOf(run)).toMatchObject({
      first: { resized: "cover.png" },
      second: { resized: "b.png" },
      third: { resized: "late.png" },
    });
    expect((await run.nodes()).map(({ state }) => state)).toEqual(Array(5).fill("completed"));
    await expectSound(w);
  });
});

describe("a job of a task", () => {
  test("that throws is an exception of the class: the run is paused, and the next attempt has a new run", async () => {
    let broken = true;
    const flaky = job(
      "Flaky",
      (_args: void, { attempt }) => {
        executed.push(`attempt ${attempt}`);
        if (broken) throw new Error("no power");
        return attempt;
      },
      { retry: { attempts: 1 } },
    );
    class Powered extends Workflow {
      static {
        this.task("light", { job: flaky });
        this.step("side", () => void executed.push("side"));
      }
    }
    const t = await testPawl({ workflows: [Powered], jobs: [flaky], logger: silent });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(Powered);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringContaining("no power") });
    broken = false;
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(executed.filter((line) => line !== "side")).toEqual(["attempt 1", "attempt 2"]);
    expect(await attemptsOf(run)).toContain("light 2 completed success");
    expect((await outputsOf(run)).light).toBe(2);
  });

  test("whose policy is to reattempt is reattempted", async () => {
    const flaky = job("Flaky", (_args: void, { attempt }) => {
      if (attempt < 3) throw new Error("busy");
    });
    class Patient extends Workflow {
      static {
        this.task("try", { job: flaky, onException: "reattempt", retry: { initial: "1 minute" } });
      }
    }
    const t = await testPawl({ workflows: [Patient], jobs: [flaky], logger: silent });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(Patient);
    await t.speedrun(run);
    expect(await attemptsOf(run)).toEqual([
      "try 1 failed reattempted_by_exception",
      "try 2 failed reattempted_by_exception",
      "try 3 completed success",
    ]);
  });

  class ByName extends Workflow {
    static {
      this.task("shrink", { job: "Resize", args: { file: "a.png" } });
      this.task("side", () => void executed.push("side"));
      this.step("close", { dependsOn: ["shrink", "side"] }, () => void executed.push("close"));
    }
  }

  test("with a name that was never registered pauses the run with an error; the run continues when a worker has the job", async () => {
    const t = await testPawl({ workflows: [ByName], logger: silent });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(ByName);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "paused", pauseReason: expect.stringMatching(/"shrink".*Resize/) });
    expect(executed).toEqual(["side"]);
    await t.deploy([ByName], [resize]);
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["side", "shrink a.png 2 true", "close"]);
    await expectSound(t);
  });

  test("that no worker has at the moment waits for one, and independent nodes proceed", async () => {
    const t = await testPawl({ workflows: [ByName], jobs: [resize], logger: silent });
    onTestFinished(() => t.close());
    await t.deploy([ByName]);
    const run = await t.pawl.start(ByName);
    await t.settle();
    expect(executed).toEqual(["side"]);
    expect(await run.status()).toBe("waiting");
    await t.deploy([ByName], [resize]);
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["side", "shrink a.png 1 true", "close"]);
  });

  test("is not run when a condition skips it, nor after a cancel", async () => {
    class Choosy extends Workflow {
      static {
        this.task("never", { job: resize, args: { file: "a" }, skipIf: () => true });
        this.task("later", { job: resize, args: { file: "b" }, dependsOn: "never", wait: "1h" });
      }
    }
    const t = await testPawl({ workflows: [Choosy], jobs: [resize], logger: silent });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(Choosy);
    await t.settle();
    await run.cancel();
    await t.advance("2h");
    expect(await run.status()).toBe("canceled");
    expect(executed).toEqual([]);
  });

  test("in flight is canceled with its run", async () => {
    const started = gate();
    const aborted = gate();
    const endless = job("Endless", (_args: void, { abortSignal }) => {
      started.open();
      return new Promise<void>(() => abortSignal.addEventListener("abort", () => aborted.open()));
    });
    class Long extends Workflow {
      static {
        this.task("work", { job: endless });
        this.task("side", () => {});
      }
    }
    const t = await testPawl({ workflows: [Long], jobs: [endless], logger: silent });
    onTestFinished(() => t.close());
    const run = await t.pawl.start(Long);
    const settled = t.settle();
    await started.opened;
    await run.cancel("enough");
    await aborted.opened;
    await settled;
    await until(async () => (await run.status()) === "canceled");
  });

  test("that no worker executes can be skipped: its run is canceled, and the next nodes run", async () => {
    const t = await testPawl({ workflows: [ByName], jobs: [resize], logger: silent });
    onTestFinished(() => t.close());
    await t.deploy([ByName]);
    const run = await t.pawl.start(ByName);
    await t.settle();
    await run.skip();
    await t.settle();
    expect(await run.status()).toBe("completed");
    await t.deploy([ByName], [resize]);
    await t.settle();
    expect(executed).toEqual(["side", "close"]);
    const { runs } = await t.pawl.runs({ workflow: "job:Resize" });
    expect(runs.map(({ status }) => status)).toEqual(["canceled"]);
    await expectSound(t);
  });

  test("has the same result wherever the worker dies", async () => {
    const t = await start(Album, resize);
    const report = await t.crashTest(Album, { files: ["a", "b"] }, { setup: () => void (executed = []) });
    expect(report).toMatchObject({ status: "completed" });
    expect(new Set(executed)).toEqual(new Set(["first cover.png 1 true", "second b 1 true", "third late.png 1 true"]));
  });
});

describe("an imported graph", () => {
  test("may name a job where the class has a method, and add nodes", async () => {
    const t = await withJobs([Album], [resize]);
    const run = await t.pawl.start(Album, { files: ["a", "b"] });
    await run.pause();
    const dag = JSON.parse(await run.exportDag());
    dag.nodes.close = { name: "close", job: "Resize", args: { file: "closing.png" }, depends_on: ["third"] };
    dag.nodes.n_1 = { name: "extra", job: "Resize", args: { file: "extra.png" }, depends_on: ["open"] };
    await run.importDag(dag);
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(executed).toHaveLength(5);
    expect(executed).toContain("close closing.png 1 true");
    expect(executed).toContain("extra extra.png 1 true");
    expect((await run.nodes()).find(({ name }) => name === "extra")).toMatchObject({
      id: "n_1",
      kind: "job",
      job: "Resize",
      state: "completed",
    });
    await expectSound(t);
  });
});

describe("ancestry", () => {
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

  class Proved extends Workflow {
    static {
      this.step("a", () => 1);
      this.task("b", { dependsOn: "a" }, () => "two");
      this.task("c", { dependsOn: "a" }, (w) => {
        if (w.attempt === 1) throw new Error("not yet");
        return { three: 3 };
      });
      this.task("left_out", { dependsOn: "a", skipIf: () => true }, () => {});
      this.step("d", { dependsOn: ["c", "b", "left_out"] }, () => null);
    }
  }

  test("of each completed node is the hash over its name, attempt and output, and the hashes of its predecessors", async () => {
    const t = await start(Proved);
    const run = await t.pawl.start(Proved);
    await t.settle();
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    const hashes = Object.fromEntries((await run.nodes()).map(({ name, ancestryHash }) => [name, ancestryHash]));
    const a = sha256(`a:1:${sha256("1")}`);
    const b = sha256(`b:1:${sha256('"two"')}:${a}`);
    const c = sha256(`c:2:${sha256('{"three":3}')}:${a}`);
    const d = sha256(`d:1:${sha256("null")}:${[b, c].sort().join(":")}`);
    expect(hashes).toEqual({ a, b, c, left_out: null, d });
    const failed = (await run.executions()).find(({ step, attempt }) => step === "c" && attempt === 1);
    expect(failed).toMatchObject({ state: "failed", ancestryHash: null });
  });

  test("differs when an output differs, from there on", async () => {
    const made = (output: unknown) =>
      class Made extends Workflow {
        static {
          this.options({ name: "Made" });
          this.step("a", () => output);
          this.task("b", { dependsOn: "a" }, () => 1);
          this.task("free", () => 1);
        }
      };
    const hashesOf = async (output: unknown) => {
      const type = made(output);
      const t = await start(type);
      const run = await t.pawl.start(type);
      await t.settle();
      return Object.fromEntries((await run.nodes()).map(({ name, ancestryHash }) => [name, ancestryHash]));
    };
    const [one, same, other] = [await hashesOf(1), await hashesOf(1), await hashesOf(2)];
    expect(same).toEqual(one);
    expect(other.free).toBe(one.free);
    expect(other.a).not.toBe(one.a);
    expect(other.b).not.toBe(one.b);
  });
});
