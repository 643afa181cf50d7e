/** Two people act on the same run at the same moment, through two servers on one database. */
import { PauseError, PermanentError, type RunHandle, Workflow, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { decodeMessage } from "../../src/core/run/message.js";
import type { Command } from "../../src/core/run/stored-schema.js";
import { forEachStore, type StoreKind } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { expectSound } from "../support/run-checks.js";
import { until } from "../support/waiting.js";
import { type HttpAnswer, type Operator, serveUsers } from "./served-pawl.js";

/** Which of two commands comes first is for chance to decide, so each pair is sent more than once. */
const rounds = sized(3, 6);

const waiting = workflow("waiting", async (ctx, _input: unknown) => {
  await ctx.waitForSignal("go");
});
const stuck = workflow("stuck", async (ctx, _input: unknown) => {
  await ctx.step("ask", () => {
    throw new PauseError("It needs a person.");
  });
});
const failing = workflow("failing", async (ctx, _input: unknown) => {
  await ctx.step("charge", () => {
    throw new PermanentError("no");
  });
});
class Chain extends Workflow {
  static {
    this.step("first", () => {});
    this.step("second", { wait: "2 days" }, () => {});
  }
}

interface Setting {
  readonly ada: Operator;
  readonly grace: Operator;
  start(name: "waiting" | "stuck" | "failing" | "Chain"): Promise<RunHandle<any, any>>;
  stopWorker(): Promise<void>;
}

async function setting(kind: StoreKind): Promise<Setting> {
  const [ada, grace] = (await serveUsers(kind, ["ada", "grace"])) as [Operator, Operator];
  const worker = ada.pawl.worker({ workflows: [waiting, stuck, failing, Chain] });
  await worker.start();
  const statuses = { waiting: "waiting", stuck: "paused", failing: "failed", Chain: "waiting" };
  return {
    ...{ ada, grace },
    start: async (name) => {
      const run = await ada.pawl.workflow(name).trigger(undefined as never);
      await until(async () => (await run.status()) === statuses[name]);
      return run;
    },
    stopWorker: () => worker.stop(),
  };
}

interface Sent {
  readonly command: string;
  readonly by: "ada" | "grace";
  readonly answer: HttpAnswer;
}

/** Sends both commands at once. */
function race(
  { ada, grace }: Pick<Setting, "ada" | "grace">,
  run: RunHandle<any, any>,
  commands: readonly [first: string, second: string],
  body: object = {},
): Promise<[Sent, Sent]> {
  const bodies: Readonly<Record<string, object>> = { signals: { name: "go" }, "resume-at": { step: "second" } };
  const send = async (by: "ada" | "grace", command: string): Promise<Sent> => {
    const operator = by === "ada" ? ada : grace;
    const answer = await operator.post(`/api/v1/runs/${run.id}/${command}`, {
      reason: `${by} says so`,
      ...bodies[command],
      ...body,
    });
    return { command, by, answer };
  };
  return Promise.all([send("ada", commands[0]), send("grace", commands[1])]);
}

/** Who has changed the run, or will: as its log says, and the messages that wait for its next worker. */
async function authorsOf(run: RunHandle<any, any>, { pawl }: Operator): Promise<string[]> {
  const recorded = (await run.history()).flatMap(({ type, data }) =>
    type === "command.accepted" ? [`${data.command} by ${data.by}`] : [],
  );
  const inbox = (await pawl.internals.store.inbox([run.id])).get(run.id) ?? [];
  const unread = inbox.map((row) => decodeMessage(row) as Command);
  return [...recorded, ...unread.map(({ type, audit }) => `${type} by ${audit?.by}`)];
}

const recordedName: Readonly<Record<string, string>> = { signals: "signal", "resume-at": "resumeAt" };
const accepted = ({ answer }: Sent) => answer.status === 200;

/** The log has the commands that were accepted and no others, and who was refused is told by whom the run was changed. */
async function expectHonest(
  run: RunHandle<any, any>,
  { ada }: Setting,
  sent: readonly Sent[],
  before: readonly string[],
): Promise<void> {
  const authors = (await authorsOf(run, ada)).slice(before.length);
  const acceptedOnes = sent.filter(accepted).map(({ command, by }) => `${recordedName[command] ?? command} by ${by}`);
  expect([...authors].sort()).toEqual([...acceptedOnes].sort());
  const log = JSON.stringify(await run.history());
  for (const { by, answer } of sent.filter((one) => !accepted(one))) {
    expect(log).not.toContain(`${by} says so`);
    expect(answer).toMatchObject({
      status: 409,
      json: { runId: run.id, runStatus: expect.any(String), lastEvent: expect.any(Number), changes: expect.any(Array) },
    });
    const { changes, lastEvent } = answer.json;
    const others = changes.flatMap((change: { by?: string }) => change.by ?? []);
    expect(others).not.toEqual([]);
    expect(others).not.toContain(by);
    for (const { seq } of changes) expect(seq).toBeLessThanOrEqual(lastEvent + 1);
  }
}

const outcomeOf = (sent: readonly Sent[]) =>
  sent
    .map(({ command, answer }) => `${command} ${answer.status}`)
    .sort()
    .join(", ");

interface Conflict {
  readonly on: "waiting" | "stuck" | "Chain";
  readonly isPaused?: boolean;
  readonly commands: readonly [string, string];
  /** Every outcome that is possible, by which of them comes first. */
  readonly outcomes: readonly string[];
  readonly endsAs?: string;
}

const conflicts: readonly Conflict[] = [
  { on: "waiting", isPaused: true, commands: ["resume", "resume"], outcomes: ["resume 200, resume 409"] },
  {
    on: "waiting",
    isPaused: true,
    commands: ["resume", "cancel"],
    outcomes: ["cancel 200, resume 200", "cancel 200, resume 409"],
    endsAs: "canceled",
  },
  {
    on: "waiting",
    isPaused: true,
    commands: ["pause", "resume"],
    outcomes: ["pause 409, resume 200", "pause 200, resume 200"],
  },
  { on: "waiting", commands: ["pause", "pause"], outcomes: ["pause 200, pause 409"], endsAs: "paused" },
  {
    on: "waiting",
    commands: ["pause", "cancel"],
    outcomes: ["cancel 200, pause 200", "cancel 200, pause 409"],
    endsAs: "canceled",
  },
  { on: "waiting", commands: ["cancel", "signals"], outcomes: ["cancel 200, signals 200", "cancel 200, signals 409"] },
  { on: "waiting", commands: ["pause", "signals"], outcomes: ["pause 200, signals 200"] },
  { on: "stuck", commands: ["skip", "resume"], outcomes: ["resume 200, skip 200", "resume 409, skip 200"] },
  { on: "stuck", commands: ["skip", "skip"], outcomes: ["skip 200, skip 409"] },
  { on: "stuck", commands: ["resume", "resume"], outcomes: ["resume 200, resume 409"] },
  {
    on: "Chain",
    isPaused: true,
    commands: ["resume-at", "resume"],
    outcomes: ["resume 200, resume-at 409", "resume 409, resume-at 200"],
  },
  { on: "Chain", isPaused: true, commands: ["resume-at", "resume-at"], outcomes: ["resume-at 200, resume-at 409"] },
];

forEachStore((kind) => {
  describe("on a run that no worker executes", () => {
    test.each(conflicts)(
      "$commands.0 and $commands.1 at once: one of the orders that are possible, and nothing else",
      async ({ on, isPaused = false, commands, outcomes, endsAs }) => {
        const world = await setting(kind);
        const runs: RunHandle<any, any>[] = [];
        for (let round = 0; round < rounds; round += 1) {
          const run = await world.start(on);
          if (isPaused) await run.pause("by the test", { by: "test" });
          runs.push(run);
        }
        await world.stopWorker();
        for (const run of runs) {
          const before = await authorsOf(run, world.ada);
          const sent = await race(world, run, commands);
          expect(outcomes).toContain(outcomeOf(sent));
          await expectHonest(run, world, sent, before);
          if (endsAs !== undefined) expect(await run.status()).toBe(endsAs);
        }
        await expectSound(world.ada);
      },
    );

    test("two retries at once are one new run, which one of them has made", async () => {
      const world = await setting(kind);
      const runs = await Promise.all(Array.from({ length: rounds }, () => world.start("failing")));
      await world.stopWorker();
      for (let round = 0; round < rounds; round += 1) {
        const run = runs[round] as RunHandle<any, any>;
        const sent = await race(world, run, ["retry", "retry"]);
        expect(outcomeOf(sent)).toBe("retry 200, retry 200");
        const [first, second] = sent.map(({ answer }) => answer.json);
        expect(first.id).toBe(second.id);
        expect([first.created, second.created].sort()).toEqual([false, true]);
        const maker = sent.find(({ answer }) => answer.json.created)?.by;
        expect((await world.ada.pawl.run(first.id).get()).startedBy?.by).toBe(maker);
      }
    });

    test("two starts at once of a run that was built are one start", async () => {
      const world = await setting(kind);
      await world.stopWorker();
      for (let round = 0; round < rounds; round += 1) {
        const run = await world.ada.pawl.build(`built-${round}`, (g) => g.node("a", { job: "none" }), { start: false });
        const sent = await race(world, run, ["start", "start"]);
        expect(outcomeOf(sent)).toBe("start 200, start 409");
        await expectHonest(run, world, sent, []);
      }
    });
  });

  describe("with the number of the last event that both have seen", () => {
    test.each([
      ["resume", "cancel"],
      ["cancel", "resume"],
      ["resume", "resume"],
    ] as const)(
      "%s and %s at once: one is carried out, and the other is refused although it were possible",
      async (...commands) => {
        const world = await setting(kind);
        for (let round = 0; round < rounds; round += 1) {
          const run = await world.start("waiting");
          await run.pause("by the test");
          const { lastEvent } = (await world.ada.get(`/api/v1/runs/${run.id}/history`)).json;
          const sent = await race(world, run, commands, { ifLastEvent: lastEvent });
          expect(sent.filter(accepted).length).toBe(1);
          await expectHonest(run, world, sent, []);
          const { answer } = sent.find((one) => !accepted(one)) as Sent;
          expect(answer.json.code).toBe("RUN_CHANGED");
          expect(answer.json.lastEvent).toBeGreaterThan(lastEvent);
          expect(answer.json.changes[0].seq).toBe(lastEvent + 1);
        }
      },
    );
  });
});
