/** Workflows in function style: steps, retries, sleeps, signals, races, children, maps, pauses, compensation. */
import { PauseError, PermanentError, TransientError, type WorkflowContext, workflow } from "pawl";
import { type Bench, failingWork, work } from "./tools.js";

const quickly = { retry: { attempts: 6, initial: 50, factor: 2, max: 500 } } as const;

export interface StepsInput {
  readonly plan: readonly ("ok" | "throws" | "transient" | "slow")[];
}

export function functionWorkflows(bench: Bench) {
  const step = (ctx: WorkflowContext<any>, name: string, ms?: number) =>
    ctx.step(name, (tools) => work(bench, ctx.runId, name, tools, ms), quickly);

  const steps = workflow("steps", async (ctx, { plan }: StepsInput) => {
    const seen: unknown[] = [];
    for (const [index, kind] of plan.entries()) {
      const name = `s${index}`;
      const body = async (tools: { attempt: number; idempotencyKey: string }) => {
        if (kind === "throws" && tools.attempt === 1)
          await failingWork(bench, ctx.runId, name, tools, new Error("a planned failure"));
        if (kind === "transient" && tools.attempt === 1)
          await failingWork(bench, ctx.runId, name, tools, new TransientError("come back", { retryAfter: 80 }));
        return work(bench, ctx.runId, name, tools, kind === "slow" ? 400 : 20);
      };
      seen.push(await ctx.step(name, body, quickly));
    }
    seen.push(...(await Promise.all([step(ctx, "left"), step(ctx, "right")])));
    return { seen };
  });

  const sleeper = workflow("sleeper", async (ctx, { ms }: { ms: number }) => {
    const seen = [await step(ctx, "before")];
    await ctx.sleep("nap", ms);
    seen.push(await step(ctx, "between"));
    await ctx.sleepUntil("until", ctx.now().getTime() + ms);
    seen.push(await step(ctx, "after"));
    return { seen };
  });

  const listener = workflow("listener", async (ctx, { count }: { count: number }) => {
    const heard: unknown[] = [];
    for (let n = 0; n < count; n += 1) {
      heard.push(await ctx.waitForSignal("go"));
      await step(ctx, `heard_${n}`);
    }
    return { heard };
  });

  const chooser = workflow("chooser", async (ctx) => {
    const any = await ctx.waitForAny(["yes", "no"], { timeout: 4_000 });
    const { name } = await ctx.race({ paid: ctx.waitForSignal("paid"), late: ctx.sleep("patience", 1_500) });
    const seen = [
      await ctx.branch("way", () => name, { paid: () => step(ctx, "thank"), late: () => step(ctx, "remind") }),
    ];
    const both = await ctx.waitForAll(["a", "b"], { timeout: 2_000 });
    seen.push(await step(ctx, "closed"));
    return { seen, any: any?.name ?? null, both: both === null ? null : Object.keys(both) };
  });

  const member = workflow("member", async (ctx, { fails, ms }: { fails?: boolean; ms?: number }) => {
    const token = await step(ctx, "own", 60);
    if (ms !== undefined) await ctx.sleep("rest", ms);
    if (fails === true) throw new PermanentError("a planned failure of a child");
    return token;
  });

  const family = workflow("family", async (ctx, { items }: { items: { fails?: boolean; ms?: number }[] }) => {
    const early = await ctx.start(member, { ms: 100 }, { name: "early" });
    const late = await ctx.run(member, {}, { name: "late" }).catch(() => "lost");
    const mapped = await ctx.map(member, items, { concurrency: 2, tolerate: items.length });
    const first = await early.result().catch(() => "lost");
    return { first, late, mapped: [...mapped], failed: mapped.failures.length };
  });

  const careful = workflow("careful", async (ctx) => {
    const seen = [await step(ctx, "before")];
    seen.push(
      await ctx.step("once", (tools) => work(bench, ctx.runId, "once", tools, 500), {
        onCrash: "pause",
        retry: { attempts: 1 },
      }),
    );
    seen.push(await step(ctx, "after"));
    return { seen };
  });

  const patient = workflow("patient", async (ctx, { passable }: { passable: boolean }) => {
    const hold = async (tools: { attempt: number; idempotencyKey: string }) => {
      if (tools.attempt === 1) throw new PauseError("a planned pause", { resumeOn: "looked", recheckAfter: 2_500 });
      return work(bench, ctx.runId, "held", tools);
    };
    const seen = [await step(ctx, "before"), await ctx.step("held", hold, quickly)];
    if (passable) seen.push(await ctx.branch("gate", () => "go", { go: () => step(ctx, "gated") }));
    return { seen };
  });

  const trip = workflow("trip", async (ctx, { fails }: { fails: boolean }) => {
    const seen: unknown[] = [];
    for (const name of ["flight", "hotel", "car"])
      seen.push(
        await ctx.step(name, (tools) => work(bench, ctx.runId, name, tools), {
          ...quickly,
          compensate: async (tools) => void (await work(bench, ctx.runId, `${name}#compensate`, tools, 60)),
        }),
      );
    if (fails) throw new PermanentError("a planned failure of a trip");
    return { seen };
  });

  return [steps, sleeper, listener, chooser, member, family, careful, patient, trip];
}
