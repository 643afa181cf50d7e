/**
 * The outcomes of a run, scenario by scenario, on every store: which worker has it, what is recorded, and what happens
 * next.
 */
import { PauseError, PermanentError, TransientError, workflow } from "pawl";
import { beforeEach, expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { expectSound } from "../support/run-checks.js";
import { databaseFor } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});

forMemoryAnd("postgres", (kind) => {
  const database = databaseFor(kind);

  test("success: the output and all steps are recorded, and nothing is left to do", async () => {
    const zip = workflow("zip", async (ctx, bucket: string) => {
      const files = await ctx.step("list", () => [`${bucket}/a`, `${bucket}/b`]);
      return { archive: await ctx.step("archive", () => "zip"), files: files.length };
    });
    const w = await database.world();
    const worker = await w.worker([zip]);
    const run = await w.pawl.workflow<string, { archive: string }>("zip").trigger("photos");
    expect(await worker.settle()).toBe(null);
    expect(await run.result()).toEqual({ archive: "zip", files: 2 });
    expect((await run.executions()).map(({ step, outcome }) => `${step} ${outcome}`)).toEqual([
      "list success",
      "archive success",
    ]);
    await expectSound(w);
  });

  test("permanent error: the run fails at once with the step's error, and a corrected start is another run", async () => {
    const read = workflow("read", (ctx, key: string) =>
      ctx.step("download", () => {
        executed.push(key);
        if (key === "wrong") throw new PermanentError("File not found");
        return key;
      }),
    );
    const w = await database.world();
    const worker = await w.worker([read]);
    const wrong = await w.pawl.start(read, "wrong");
    expect(await worker.settle()).toBe(null);
    expect(await wrong.get()).toMatchObject({ status: "failed", error: { message: "File not found" } });
    expect(await wrong.executions()).toMatchObject([{ step: "download", state: "failed" }]);
    const right = await w.pawl.start(read, "right");
    await worker.settle();
    expect(await right.result()).toBe("right");
    expect(right.id).not.toBe(wrong.id);
    expect(executed).toEqual(["wrong", "right"]);
    expect(await errorOf(wrong.resume())).toMatchObject({ code: "INVALID_STATE" });
  });

  test("crash: another worker continues the same run, and recorded steps do not run again", async () => {
    const started = gate();
    let crashes = true;
    const process = workflow("process", async (ctx) => {
      const data = await ctx.step("download", () => {
        executed.push("download");
        return "data";
      });
      return ctx.step("resize", async () => {
        executed.push("resize");
        if (!crashes) return `small ${data}`;
        started.open();
        return new Promise<string>(() => {});
      });
    });
    const w = await database.world();
    const first = await w.worker([process]);
    const run = await w.pawl.start(process);
    await started.opened;
    expect(await run.status()).toBe("running");
    await first.kill();
    crashes = false;
    await (await w.worker([process])).settle();
    expect(await run.result({ timeout: "100s" })).toBe("small data");
    expect(executed).toEqual(["download", "resize", "resize"]);
    await expectSound(w);
  });

  test("transient error: the same run resumes after the requested time, and its worker is free meanwhile", async () => {
    const call = workflow("call", (ctx, name: string) =>
      ctx.step("api", ({ attempt }) => {
        executed.push(`${name} ${attempt}`);
        if (name === "limited" && attempt === 1) throw new TransientError("rate limit", { retryAfter: "30s" });
        return "answer";
      }),
    );
    const w = await database.world();
    const worker = await w.worker([call], { concurrency: 1 });
    const limited = await w.pawl.start(call, "limited");
    await worker.settle();
    const due = w.clock.read() + 30_000;
    expect(await limited.get()).toMatchObject({ status: "waiting", waitingFor: [{ kind: "retry", step: "api" }] });
    await w.pawl.start(call, "other");
    expect(await worker.settle()).toBe(due);
    w.clock.moveTo(due - 1);
    await worker.settle();
    expect(executed).toEqual(["limited 1", "other 1"]);
    w.clock.moveTo(due);
    await worker.settle();
    expect(await limited.result()).toBe("answer");
    expect(executed).toEqual(["limited 1", "other 1", "limited 2"]);
  });

  test("pause: no worker has the run, it is rechecked at its interval, and it continues with a signal or a given output", async () => {
    let approved = false;
    const approval = workflow("approval", async (ctx) => {
      await ctx.step("ask", () => void executed.push("ask"));
      const answer = await ctx.step("wait", () => {
        executed.push("look");
        if (!approved) throw new PauseError("Waiting for approval", { resumeOn: "approved", recheckAfter: "1 hour" });
        return "seen";
      });
      return ctx.step("process", () => answer);
    });
    const w = await database.world();
    const worker = await w.worker([approval]);
    const [rechecked, signaled, answered] = await w.pawl.startMany(approval, [undefined, undefined, undefined]);
    await worker.settle();
    expect(await rechecked?.get()).toMatchObject({ status: "paused", pauseReason: "Waiting for approval" });
    expect((await w.pawl.workers()).every(({ executing }) => executing === 0)).toBe(true);
    await answered?.resume({ output: "by hand" });
    await worker.settle();
    expect(await answered?.result()).toBe("by hand");

    executed = [];
    w.clock.moveTo(w.clock.read() + 3_600_000);
    await worker.settle();
    expect(executed).toEqual(["look", "look"]);
    expect(await rechecked?.status()).toBe("paused");

    approved = true;
    await signaled?.signal("approved");
    await worker.settle();
    expect(await signaled?.result()).toBe("seen");
    expect(await rechecked?.status()).toBe("paused");
    w.clock.moveTo(w.clock.read() + 3_600_000);
    await worker.settle();
    expect(await rechecked?.result()).toBe("seen");
    expect(executed.filter((line) => line === "ask")).toEqual([]);
    await expectSound(w);
  });
});
