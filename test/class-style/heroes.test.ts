/**
 * The hero that a run is about: it is loaded for each execution, has one active run at a time, and runs are found by
 * it.
 */
import { randomUUID } from "node:crypto";
import { AlreadyActiveError, connect, Pawl, type RunStatus, Workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { MemoryStore } from "../../src/store/memory/index.js";
import { working } from "../support/class-workflows.js";
import type { StoreKind } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { type AnyRun, attemptsOf } from "../support/run-checks.js";
import { databaseFor, silent, start } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

/** Clients of one database, each with its own connections. */
async function connectAll(kind: StoreKind, url: string, count: number): Promise<readonly Pawl[]> {
  const memory = new MemoryStore();
  const clients: Pawl[] = [];
  onTestFinished(async () => {
    await Promise.all(clients.map((client) => client.close()));
  });
  for (let n = 0; n < count; n += 1)
    clients.push(kind === "memory" ? new Pawl(memory, silent) : await connect(url, { logger: silent }));
  return clients;
}

/** A hero that no other test uses. */
const newHero = () => ({ type: "User", id: randomUUID() }) as const;

const hero = newHero();

class Onboarding extends Workflow<{ id: string }> {
  static readonly heroType = "User";
  static loadHero = (id: string) => ({ id });
  static {
    this.step("wait", (w) => w.waitForSignal("go"));
  }
}

forMemoryAnd("mysql", (kind) => {
  const database = databaseFor(kind);

  test.each(["in processes without workers", "where workers take what is started beside them"])(
    "50 simultaneous starts for one hero create one run, and 49 errors that name it: %s",
    async (where) => {
      const clients = await connectAll(kind, database.url(), 5);
      const hero = newHero();
      if (where !== "in processes without workers")
        await Promise.all(clients.map((client) => client.worker({ workflows: [Onboarding] }).start()));
      const starts = await Promise.allSettled(
        Array.from({ length: 50 }, (_, n) => (clients[n % 5] as Pawl).start(Onboarding, undefined, { hero })),
      );
      const [winner, ...others] = starts.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const refusals = starts.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      expect(others).toEqual([]);
      expect(refusals).toHaveLength(49);
      for (const error of refusals) {
        expect(error).toBeInstanceOf(AlreadyActiveError);
        expect(error).toMatchObject({ runId: winner?.id, workflow: "Onboarding", hero });
        expect(error.message).toContain(winner?.id);
      }
      expect((await (clients[0] as Pawl).runs({ hero })).runs.map(({ id }) => id)).toEqual([winner?.id]);
    },
  );

  test("clients that wait for the active run and start again each get their turn, and two runs are never active together", async () => {
    const clients = await connectAll(kind, database.url(), 4);
    const hero = newHero();
    let active = 0;
    let maxActive = 0;
    class Exclusive extends Workflow {
      static {
        this.step("work", async () => {
          active += 1;
          maxActive = Math.max(maxActive, active);
          await new Promise((resolve) => setImmediate(resolve));
          active -= 1;
        });
      }
    }
    await Promise.all(clients.map((client) => client.worker({ workflows: [Exclusive] }).start()));
    const startWhenFree = async (client: Pawl): Promise<void> => {
      try {
        await (await client.start(Exclusive, undefined, { hero })).result({ timeout: "100s" });
      } catch (error) {
        if (!(error instanceof AlreadyActiveError)) throw error;
        await client.run(error.runId).result({ timeout: "100s" });
        await startWhenFree(client);
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, n) => startWhenFree(clients[n % 4] as Pawl)));
    expect(maxActive).toBe(1);
    expect((await (clients[0] as Pawl).runs({ hero, status: "completed" })).runs).toHaveLength(12);
  });

  test("a run that is pending, waiting or paused is active; one that has completed, failed or been canceled is not", async () => {
    const w = await database.world();
    const hero = newHero();
    const Ending = working(
      async (run) => {
        if ((await run.waitForSignal("go")) === "wrong") throw new Error("boom");
      },
      { onException: "fail" },
    );
    const again = () => w.pawl.start(Ending, undefined, { hero });
    const first = await again();
    const refusedWhile = async (status: RunStatus) => {
      expect(await first.status()).toBe(status);
      expect(await errorOf(again())).toMatchObject({ code: "ALREADY_ACTIVE", runId: first.id });
    };
    await refusedWhile("pending");
    const worker = await w.worker([Ending]);
    await worker.settle();
    await refusedWhile("waiting");
    await first.pause();
    await refusedWhile("paused");
    await first.resume();
    const ended: RunStatus[] = [];
    const runs = [first];
    for (const end of [
      (run: AnyRun) => run.signal("go"),
      (run: AnyRun) => run.signal("go", "wrong"),
      (run: AnyRun) => run.cancel(),
    ]) {
      const run = runs.at(-1) as AnyRun;
      await end(run);
      await worker.settle();
      ended.push(await run.status());
      runs.push(await again());
    }
    expect(ended).toEqual(["completed", "failed", "canceled"]);
    expect(new Set(runs.map(({ id }) => id)).size).toBe(4);
    expect((await w.pawl.runs({ hero, active: true })).runs.map(({ id }) => id)).toEqual([runs[3]?.id]);
  });

  test("allowMultiple, of the class or of the start, lets a hero have many active runs", async () => {
    const w = await database.world();
    const hero = newHero();
    const Many = working((run) => run.waitForSignal("go"), {}, { name: "Many", allowMultiple: true });
    const One = working((run) => run.waitForSignal("go"), {}, { name: "One" });
    const ofTheClass = await Promise.all(Array.from({ length: 10 }, () => w.pawl.start(Many, undefined, { hero })));
    const ofTheStart = await Promise.all(
      Array.from({ length: 10 }, () => w.pawl.start(One, undefined, { hero, allowMultiple: true })),
    );
    expect(new Set([...ofTheClass, ...ofTheStart].map(({ id }) => id)).size).toBe(20);
    // Runs with allowMultiple do not count: a run without it can still start, and only once.
    const strict = await w.pawl.start(One, undefined, { hero });
    expect(await errorOf(w.pawl.start(One, undefined, { hero }))).toMatchObject({ runId: strict.id });
    expect((await w.pawl.runs({ hero, active: true })).runs).toHaveLength(21);
  });

  test("another id, another type with the same id, and another class do not conflict", async () => {
    const w = await database.world();
    const [A, B] = ["A", "B"].map((name) => working(() => {}, {}, { name })) as [
      ReturnType<typeof working>,
      ReturnType<typeof working>,
    ];
    await w.pawl.start(A, undefined, { hero: { type: "User", id: "1" } });
    await w.pawl.start(A, undefined, { hero: { type: "Order", id: "1" } });
    await w.pawl.start(A, undefined, { hero: { type: "User", id: "2" } });
    await w.pawl.start(B, undefined, { hero: { type: "User", id: "1" } });
    // Type and id are not concatenated in a way that makes two heroes look alike.
    await w.pawl.start(A, undefined, { hero: { type: 'User","1', id: "2" } });
    await w.pawl.start(A, undefined, { hero: { type: "User", id: '1","2' } });
    expect((await w.pawl.runs({ workflow: A })).runs).toHaveLength(5);
    expect((await w.pawl.runs({ workflow: B })).runs).toHaveLength(1);
  });

  test("runs are found by hero, by state and by activity, separately and in combination", async () => {
    const w = await database.world();
    const Story = working(
      (run) => {
        const { id } = run.hero as { id: string };
        if (id === "waiting") return run.sleep("nap", "1 day");
        if (id === "paused") run.pause();
        if (id === "canceled") run.cancel();
        if (id === "failed") throw new Error("boom");
        return undefined;
      },
      { onException: "fail" },
      { name: "Story" },
    );
    const Other = working((run) => run.sleep("nap", "1 day"), {}, { name: "Other" });
    const worker = await w.worker([Story, Other]);
    const ids = new Map<string, string>();
    for (const state of ["waiting", "paused", "canceled", "failed", "completed"])
      ids.set(state, (await w.pawl.start(Story, undefined, { hero: { type: "User", id: state } })).id);
    const other = await w.pawl.start(Other, undefined, { hero: { type: "User", id: "waiting" } });
    await worker.settle();
    await worker.worker.stop();
    ids.set("pending", (await w.pawl.start(Story, undefined, { hero: { type: "User", id: "pending" } })).id);
    const findIds = async (filter: Parameters<typeof w.pawl.runs>[0]) =>
      (await w.pawl.runs(filter)).runs.map(({ id }) => id).sort();
    const of = (...states: string[]) => states.map((state) => ids.get(state)).sort();
    for (const [state, id] of ids) {
      expect(await findIds({ workflow: Story, status: state as RunStatus })).toEqual([id]);
      expect(await findIds({ workflow: Story, hero: { type: "User", id: state } })).toEqual([id]);
      expect(await findIds({ hero: { type: "Order", id: state } })).toEqual([]);
    }
    expect(await findIds({ workflow: Story, active: true })).toEqual(of("pending", "waiting", "paused"));
    expect(await findIds({ workflow: Story, active: false })).toEqual(of("canceled", "failed", "completed"));
    expect(await findIds({ hero: { type: "User", id: "waiting" } })).toEqual([...of("waiting"), other.id].sort());
    expect(await findIds({ hero: { type: "User", id: "paused" }, status: "paused", active: true })).toEqual(
      of("paused"),
    );
    expect(await findIds({ hero: { type: "User", id: "paused" }, status: "waiting" })).toEqual([]);
    expect(await findIds({ hero: { type: "User", id: "canceled" }, active: true })).toEqual([]);
  });
});

test("runs that are being executed are found by their state", async () => {
  const started = gate();
  const finish = gate();
  const Busy = working(async () => {
    started.open();
    await finish.opened;
  });
  const t = await start(Busy);
  const run = await t.pawl.start(Busy, undefined, { hero });
  void t.settle();
  await started.opened;
  expect((await t.pawl.runs({ hero, status: "running", active: true })).runs).toMatchObject([{ id: run.id, hero }]);
  finish.open();
  await t.settle();
  expect((await t.pawl.runs({ status: "running" })).runs).toEqual([]);
});

describe("a start", () => {
  test("by name is refused as well while the hero has an active run", async () => {
    const t = await start(Onboarding);
    const first = await t.pawl.start(Onboarding, undefined, { hero });
    expect(await errorOf(t.pawl.workflow("Onboarding").trigger(undefined, { hero }))).toMatchObject({
      code: "ALREADY_ACTIVE",
      runId: first.id,
    });
  });

  test("with the idempotency key of the active run returns that run, not an error", async () => {
    const t = await start(Onboarding);
    const options = { hero, idempotencyKey: "signup-42" };
    const first = await t.pawl.start(Onboarding, undefined, options);
    expect((await t.pawl.start(Onboarding, undefined, options)).id).toBe(first.id);
    expect(await errorOf(t.pawl.start(Onboarding, undefined, { hero, idempotencyKey: "another" }))).toMatchObject({
      code: "ALREADY_ACTIVE",
      runId: first.id,
    });
  });

  test("without a hero, of a class that loads one, or with a hero of another type, is refused", async () => {
    const t = await start(Onboarding);
    const untyped = t.pawl.start as (workflow: unknown, input?: unknown, options?: object) => Promise<unknown>;
    const starting = (options?: object) => errorOf(untyped.call(t.pawl, Onboarding, undefined, options));
    expect(await starting()).toMatchObject({ code: "INVALID_INPUT", message: expect.stringContaining('type: "User"') });
    expect(await starting({ hero: { type: "Order", id: "1" } })).toMatchObject({ code: "INVALID_INPUT" });
    expect((await t.pawl.runs()).runs).toEqual([]);
  });

  test("without a hero may be repeated, because uniqueness applies per hero", async () => {
    const Plain = working((w) => w.waitForSignal("go"));
    const t = await start(Plain);
    await t.pawl.start(Plain);
    await t.pawl.start(Plain);
    expect((await t.pawl.runs({ active: true })).runs).toHaveLength(2);
  });
});

describe("the hero of an execution", () => {
  test("is loaded for each execution, including reattempts, and each execution has its own instance", async () => {
    const names = ["Ada", "Grace", "Barbara"];
    const seen: string[] = [];
    const instances = new Set<unknown>();
    class Greeting extends Workflow<{ name: string }> {
      static loadHero = () => ({ name: names.shift() as string });
      static {
        this.step("first", (w) => {
          seen.push(w.hero.name);
          instances.add(w);
          if (w.attempt === 1) w.reattempt();
        });
        this.step("second", (w) => {
          seen.push(w.hero.name);
          instances.add(w);
        });
      }
    }
    const t = await start(Greeting);
    const run = await t.pawl.start(Greeting, undefined, { hero });
    await t.speedrun(run);
    expect(seen).toEqual(["Ada", "Grace", "Barbara"]);
    expect(instances.size).toBe(3);
  });

  test("that no longer exists cancels the run, with a reason that names it", async () => {
    const users = new Map([[hero.id as string, hero]]);
    const executed: string[] = [];
    class Deleting extends Workflow<{ id: string }> {
      static loadHero = async (id: string) => users.get(id);
      static {
        this.step("first", () => void executed.push("first"));
        this.step("second", { wait: "1 day" }, () => void executed.push("second"));
      }
    }
    const t = await start(Deleting);
    const run = await t.pawl.start(Deleting, undefined, { hero });
    await t.settle();
    users.clear();
    await t.speedrun(run);
    expect(executed).toEqual(["first"]);
    expect(await attemptsOf(run)).toEqual(["first 1 completed success", "second 1 canceled canceled_by_condition"]);
    expect(await run.get()).toMatchObject({
      status: "canceled",
      error: { message: `The hero User ${hero.id} is gone.` },
    });
  });

  test("that no longer exists is null in a class with mayProceedWithoutHero", async () => {
    const seen: unknown[] = [];
    class Tolerant extends Workflow<object | null> {
      static loadHero = () => null;
      static {
        this.options({ mayProceedWithoutHero: true });
        this.step("work", (w) => void seen.push(w.hero));
      }
    }
    const t = await start(Tolerant);
    const run = await t.pawl.start(Tolerant, undefined, { hero });
    const without = await t.pawl.start(Tolerant);
    await t.speedrun(run);
    await t.speedrun(without);
    expect(seen).toEqual([null, null]);
  });

  test("may be passed in the options without an input if the workflow takes none", async () => {
    const seen: unknown[] = [];
    class Welcome extends Workflow<{ id: string }> {
      static readonly heroType = "User";
      static loadHero = (id: string) => ({ id });
      static {
        this.step("work", (w) => void seen.push([w.hero, w.input]));
      }
    }
    const t = await start(Welcome);
    await t.speedrun(await t.pawl.start(Welcome, { hero: Welcome.heroOf({ id: "42" }), tags: ["a"] }));
    await t.speedrun(await t.pawl.start(Welcome, undefined, { hero: Welcome.heroOf(43) }));
    expect(seen).toEqual([
      [{ id: "42" }, undefined],
      [{ id: "43" }, undefined],
    ]);
    const { runs } = await t.pawl.runs({ hero: Welcome.heroOf(42) });
    expect(runs).toMatchObject([{ hero: { type: "User", id: "42" }, tags: ["a"] }]);
  });

  test("may be part of the input of a workflow that needs no hero; where that is ambiguous, the start is refused", async () => {
    class Tolerant extends Workflow<object | null, void> {
      static readonly heroType = "User";
      static loadHero = () => null;
      static {
        this.options({ mayProceedWithoutHero: true });
        this.step("work", () => {});
      }
    }
    class Casting extends Workflow<unknown, { hero: { type: string; id: string } }> {
      static {
        this.step("work", () => {});
      }
    }
    const t = await start(Tolerant, Casting);
    expect(await (await t.pawl.start(Casting, { hero })).get()).toMatchObject({ hero: null, input: { hero } });
    expect(await errorOf((t.pawl as any).start(Tolerant, { hero }))).toMatchObject({
      code: "INVALID_INPUT",
      message:
        'The hero in start("Tolerant", { hero }) may be an option or part of the input, because this workflow does not need a hero; write start("Tolerant", undefined, { hero }), or start("Tolerant", input, {}).',
    });
    expect((await t.pawl.runs({ workflow: Tolerant })).runs).toEqual([]);
  });

  test.each([
    [42, "number 42"],
    [42n, "bigint 42"],
  ])("has a string as its id, and for %o the error says how to write it", async (id, description) => {
    const t = await start(Onboarding);
    const message = `The hero's id is the ${description}, but a hero's id must be a string; write { type: "User", id: String(id) }, or use heroOf(hero) of the class.`;
    const numbered = { hero: { type: "User", id } } as any;
    expect(await errorOf(t.pawl.start(Onboarding, numbered))).toMatchObject({ code: "INVALID_INPUT", message });
    expect(await errorOf(t.pawl.runs(numbered))).toMatchObject({ code: "INVALID_INPUT", message });
  });

  test.each([
    [{ id: "42", name: "Ada" }, "an object with id, name"],
    [{ type: "User" }, "an object with type"],
    ["42", "a string"],
  ])("is a reference, and for %o the error says how to write one", async (invalidHero, description) => {
    const t = await start(Onboarding);
    expect(await errorOf(t.pawl.start(Onboarding, { hero: invalidHero as any }))).toMatchObject({
      message: `The hero of a run of workflow "Onboarding" is given by type and id, { type: "User", id: "…" }, not as ${description}.`,
    });
  });

  test("without a loader is its type and id; in a run without a hero it is null", async () => {
    const seen: unknown[] = [];
    const Plain = working((w) => void seen.push(w.hero));
    const t = await start(Plain);
    await t.speedrun(await t.pawl.start(Plain, undefined, { hero }));
    await t.speedrun(await t.pawl.start(Plain));
    expect(seen).toEqual([hero, null]);
  });
});
