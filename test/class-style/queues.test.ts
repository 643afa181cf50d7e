/** Queue and priority of a class and of a step: which worker runs a step, and in which order. */
import { Workflow } from "pawl";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { world } from "../support/virtual-worlds.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});

class Report extends Workflow<unknown, string> {
  static {
    this.options({ queue: "office", priority: 3 });
    this.step("collect", (w) => void executed.push(`collect ${w.input}`));
    this.step(
      "render",
      { queue: "graphics", wait: "1 hour", priority: 9 },
      (w) => void executed.push(`render ${w.input}`),
    );
    this.step("print", { queue: "graphics" }, (w) => void executed.push(`print ${w.input}`));
    this.step("send", (w) => void executed.push(`send ${w.input}`));
  }
}

forMemoryAnd("postgres", (kind) => {
  const newWorld = async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    return world(kind, database.url);
  };

  test("a step with its own queue is run only by workers that serve that queue", async () => {
    const w = await newWorld();
    const startWorkerFor = async (queue: string) => {
      const { worker, settle } = await w.worker([Report], { queues: [queue] });
      await settle();
      await worker.stop();
    };
    const run = await w.pawl.start(Report, "a");
    await startWorkerFor("graphics");
    expect(executed).toEqual([]);
    await startWorkerFor("office");
    expect(executed).toEqual(["collect a"]);
    expect(await run.get()).toMatchObject({ status: "waiting", currentStep: "render", queue: "office" });
    w.clock.moveTo(w.clock.read() + 3_600_000);
    await startWorkerFor("office");
    expect(executed).toEqual(["collect a"]);
    await startWorkerFor("graphics");
    expect(executed).toEqual(["collect a", "render a", "print a"]);
    await startWorkerFor("graphics");
    expect(await run.status()).toBe("waiting");
    await startWorkerFor("office");
    expect(executed.at(-1)).toBe("send a");
    expect(await run.status()).toBe("completed");
    expect(await w.pawl.verify()).toMatchObject({ differences: [] });
  });

  test("a run that is parked in a queue that the code no longer names is found", async () => {
    class Old extends Workflow {
      static {
        this.options({ name: "Moved" });
        this.step("begin", () => {});
        this.step("render", { queue: "graphics", wait: "1 hour" }, () => void executed.push("old"));
      }
    }
    class New extends Workflow {
      static {
        this.options({ name: "Moved" });
        this.step("begin", () => {});
        this.step("render", { wait: "1 hour" }, () => void executed.push("new"));
      }
    }
    const w = await newWorld();
    const old = await w.worker([Old]);
    const run = await w.pawl.start(Old);
    w.clock.moveTo((await old.settle()) as number);
    await old.worker.stop();
    const { settle } = await w.worker([New]);
    await settle();
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["new"]);
  });

  test("a worker without a queue option serves all queues", async () => {
    const w = await newWorld();
    const worker = await w.worker([Report]);
    const run = await w.pawl.start(Report, "a");
    w.clock.moveTo((await worker.settle()) as number);
    await worker.settle();
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["collect a", "render a", "print a", "send a"]);
  });

  test("the step with the higher priority runs first", async () => {
    class Steps extends Workflow<unknown, string> {
      static {
        this.step("one", { wait: "1 hour", priority: 1 }, (w) => void executed.push(`one ${w.input}`));
        this.step("two", { wait: "1 hour", priority: 9 }, (w) => void executed.push(`two ${w.input}`));
      }
    }
    const w = await newWorld();
    const first = await w.worker([Steps]);
    const older = await w.pawl.start(Steps, "older");
    w.clock.moveTo((await first.settle()) as number);
    await first.settle();
    const newer = await w.pawl.start(Steps, "newer");
    w.clock.moveTo((await first.settle()) as number);
    await first.worker.stop();
    for (const run of [newer, older]) {
      await run.pause();
      await run.resume();
    }
    const second = await w.worker([Steps], { concurrency: 1 });
    await second.settle();
    expect(executed).toEqual(["one older", "two older", "one newer"]);
  });
});
