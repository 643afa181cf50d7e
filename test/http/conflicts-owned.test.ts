/** Two people act on the same run at the same moment while a worker executes it, so that its inbox takes the commands. */
import { type RunHandle, type Worker, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import type { StoreKind } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { gate, until } from "../support/waiting.js";
import { type HttpAnswer, type Operator, serveUsers } from "./served-pawl.js";

interface Executing {
  readonly ada: Operator;
  readonly grace: Operator;
  readonly run: RunHandle<any, any>;
  /** Lets the step end, after which the worker applies what is in the inbox. */
  finishStep(): void;
}

/** A run whose step is being executed. */
async function executing({ ada, grace }: Pick<Executing, "ada" | "grace">, workers: Worker[]): Promise<Executing> {
  const step = gate();
  const begun = gate();
  const name = `slow-${workers.length}`;
  const slow = workflow(name, async (ctx, _input: unknown) => {
    await ctx.step("work", async () => {
      begun.open();
      await step.opened;
    });
    await ctx.waitForSignal("go");
  });
  const worker = ada.pawl.worker({ workflows: [slow] });
  workers.push(worker);
  onTestFinished(() => step.open());
  await worker.start();
  const run = await ada.pawl.start(slow, 1);
  await begun.opened;
  // The start of a step that takes longer is recorded a little later; from then on only commands make the log grow.
  await until(async () => (await run.history()).some(({ type }) => type === "step.started"));
  return { ada, grace, run, finishStep: () => step.open() };
}

async function users(kind: StoreKind): Promise<Pick<Executing, "ada" | "grace">> {
  const [ada, grace] = (await serveUsers(kind, ["ada", "grace"])) as [Operator, Operator];
  return { ada, grace };
}

async function race({ ada, grace, run }: Executing, first: string, second: string, body: object = {}) {
  const path = `/api/v1/runs/${run.id}`;
  const answers = await Promise.all([
    ada.post(`${path}/${first}`, { reason: "ada says so", ...body }),
    grace.post(`${path}/${second}`, { reason: "grace says so", ...body }),
  ]);
  return answers as [HttpAnswer, HttpAnswer];
}

const authorsOf = async (run: RunHandle<any, any>) =>
  (await run.history()).flatMap(({ type, data }) => (type === "command.accepted" ? [data.by as string] : []));

/** Once the worker has applied everything: who was accepted is in the log, and who was refused is not. */
async function expectRecorded(
  { run, finishStep }: Executing,
  answers: readonly [HttpAnswer, HttpAnswer],
): Promise<void> {
  finishStep();
  await until(async () => ["waiting", "paused", "canceled"].includes(await run.status()));
  const names = ["ada", "grace"];
  const accepted = names.filter((_, index) => answers[index]?.status === 200);
  expect([...(await authorsOf(run))].sort()).toEqual(accepted);
  for (const [index, { status, json }] of answers.entries()) {
    if (status === 200) continue;
    expect({ status, json }).toMatchObject({ status: 409, json: { runId: run.id, runStatus: expect.any(String) } });
    // The worker may have applied the other command already.
    const told = [...json.changes, ...(json.pending ?? [])] as { by?: string }[];
    const others = told.flatMap(({ by }) => by ?? []);
    expect(new Set(others)).toEqual(new Set([names[1 - index]]));
  }
}

forMemoryAnd("mysql", (kind) => {
  const rounds = 4;

  test("two pauses at once: one is accepted, and the other is told who was first", async () => {
    const both = await users(kind);
    const workers: Worker[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const world = await executing(both, workers);
      const answers = await race(world, "pause", "pause");
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
      await expectRecorded(world, answers);
    }
  });

  test("a pause and a cancel at once: the cancel is accepted, and the pause if it came first", async () => {
    const both = await users(kind);
    const workers: Worker[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const world = await executing(both, workers);
      const answers = await race(world, "pause", "cancel");
      expect(answers[1].status).toBe(200);
      await expectRecorded(world, answers);
      await until(async () => (await world.run.status()) === "canceled");
    }
  });

  test("with the number of the last event that both have seen, one of two commands is accepted", async () => {
    const both = await users(kind);
    const workers: Worker[] = [];
    for (const [first, second] of [
      ["pause", "cancel"],
      ["cancel", "pause"],
      ["pause", "pause"],
      ["cancel", "cancel"],
    ] as const) {
      const world = await executing(both, workers);
      const { lastEvent } = (await both.ada.get(`/api/v1/runs/${world.run.id}/history`)).json;
      const answers = await race(world, first, second, { ifLastEvent: lastEvent });
      expect([first, second, answers.map(({ status }) => status).sort()]).toEqual([first, second, [200, 409]]);
      expect(answers.find(({ status }) => status === 409)?.json.code).toBe("RUN_CHANGED");
      await expectRecorded(world, answers);
    }
  });
});
