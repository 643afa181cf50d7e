/** Many writers at once: no deadlock, no lost message, no lost or doubled event. */
import { systemRuntime } from "../../runtime/system.js";
import type { Batch, CommitResult, Fence, NewRun, Store } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  eventTypes,
  finish,
  newMessage,
  newRuns,
  park,
  routesOf,
  transition,
  uniqueName,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

const longTimeoutMs = 300_000;
/** Only what hangs takes so long: a busy machine is no failure. */
const patienceMs = 100_000;

export function concurrencyTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test(
    "batches that touch the same runs in opposite orders do not deadlock",
    async () => {
      const rounds = fixture.rounds(75);
      const shared = newRuns(6, { due: { kind: "held" } });
      await fixture.startAll(shared);
      const warnings: string[] = [];
      const onWarning = (text: string) => warnings.push(text);
      const instances: Store[] = fixture.harness.sharesAcrossInstances
        ? [await fixture.open({ onWarning }), await fixture.open({ onWarning })]
        : [fixture.store, fixture.store];
      const writers = [...instances, ...instances].map(async (store, number) => {
        const worker = await fixture.registerWorker({}, store);
        const own = newRuns(4, { due: { kind: "owned" } });
        await fixture.startAll(own, worker, store);
        const isForward = number % 2 === 0;
        const order = <T>(items: readonly T[]) => (isForward ? items : items.toReversed());
        for (let round = 0; round < rounds; round += 1) {
          const transitions = order(own).map(({ id }, index) =>
            transition(id, {
              afterSeq: round,
              events: [event(`${round}`)],
              messages: order(shared).map((to) => newMessage(to.id, `${number}/${round}/${index}`)),
            }),
          );
          expect(await store.commit(batch(worker, transitions)), `round ${round}`).toMatchObject({ kind: "committed" });
        }
        return own;
      });
      const owned = (await Promise.all(writers)).flat();
      expect(warnings, "no deadlock occurred").toEqual([]);
      const logs = await fixture.store.logs(owned.map(({ id }) => id));
      for (const { id } of owned) expect(logs.get(id)).toHaveLength(rounds);
      for (const task of await fixture.tasks(...shared))
        expect(task).toMatchObject({ pendingMessages: 4 * rounds * 4, state: "ready" });
      const inbox = await fixture.inbox(shared[0]?.id as string);
      for (const number of [0, 1, 2, 3]) {
        const rounds = inbox
          .filter(({ data }) => data.startsWith(`${number}/`))
          .map(({ data }) => Number(data.split("/")[1]));
        expect(rounds, "the messages of one sender stay in order").toEqual([...rounds].sort((a, b) => a - b));
      }
    },
    longTimeoutMs,
  );

  test(
    "clients that move the same runs in opposite orders: each commit succeeds as a whole, or is a conflict",
    async () => {
      const runs = newRuns(5, { due: { kind: "held" } });
      await fixture.startAll(runs);
      const instances: Store[] = [fixture.store, await fixture.openAnother()];
      const clients = [...instances, ...instances].map(async (store, number) => {
        const order = number % 2 === 0 ? runs : runs.toReversed();
        let committed = 0;
        for (let round = 0; round < 200 && committed < fixture.rounds(25); round += 1) {
          const logs = await store.logs(runs.map(({ id }) => id));
          const transitions = order.map(({ id }) =>
            transition(id, {
              afterSeq: logs.get(id)?.length ?? 0,
              events: [event(`${number}/${round}`)],
              next: park("paused"),
            }),
          );
          const result = await store.commit(batch(null, transitions));
          if (result.kind === "committed") committed += 1;
          else expect(runs.map(({ id }) => id)).toContain((result as { runId?: string }).runId);
        }
        return committed;
      });
      const total = (await Promise.all(clients)).reduce((sum, committed) => sum + committed, 0);
      expect(total).toBeGreaterThan(0);
      const logs = await fixture.store.logs(runs.map(({ id }) => id));
      const first = logs.get(runs[0]?.id as string) ?? [];
      expect(first).toHaveLength(total);
      for (const { id } of runs) {
        expect(eventTypes(logs.get(id) ?? [])).toEqual(eventTypes(first));
        expect((logs.get(id) ?? []).map(({ seq }) => seq)).toEqual(first.map((_, index) => index + 1));
      }
    },
    longTimeoutMs,
  );

  test(
    "messages are never lost between senders and a run that parks, and none is read twice",
    async () => {
      const senderStores = [await fixture.openAnother(), await fixture.openAnother()];
      const worker = await fixture.registerWorker();
      const rounds = fixture.rounds(12);
      const messagesPerSender = 15;
      for (let round = 0; round < rounds; round += 1) {
        const run = await fixture.start({ due: { kind: "held" } });
        const senders = senderStores.map(async (store, number) => {
          for (let index = 0; index < messagesPerSender; index += 1) {
            const { undeliverable } = await store.send([newMessage(run.id, `${number}/${index}`)]);
            expect(undeliverable).toEqual([]);
            if ((index + round) % 3 === 0) await delay(1);
          }
        });
        const read = drainMessages(run, worker, senderStores.length * messagesPerSender);
        await Promise.all([...senders, read]);
        const log = eventTypes(await fixture.log(run.id)).filter((type) => type !== "parked");
        expect(new Set(log).size).toBe(senderStores.length * messagesPerSender);
        for (const number of senderStores.keys()) {
          const eventsOfSender = log.filter((type) => type.startsWith(`${number}/`));
          expect(eventsOfSender).toEqual(Array.from({ length: messagesPerSender }, (_, index) => `${number}/${index}`));
        }
        expect(await fixture.task(run.id)).toMatchObject({ pendingMessages: 0 });
        expect(await fixture.inbox(run.id)).toEqual([]);
      }
    },
    longTimeoutMs,
  );

  /** Claims the run, drains its inbox and parks it, as a worker does, until `howMany` messages have been read. */
  async function drainMessages(run: NewRun, worker: Fence, howMany: number): Promise<void> {
    let position = 0;
    let seen = 0;
    const deadline = systemRuntime.monotonic() + patienceMs;
    while (seen < howMany) {
      if (systemRuntime.monotonic() > deadline)
        throw new Error(`Only ${seen} of ${howMany} messages ever woke the run.`);
      const { tasks } = await fixture.claim(worker, routesOf(run));
      if (tasks.length === 0) {
        await delay(1);
        continue;
      }
      for (let parked = false; !parked && systemRuntime.monotonic() < deadline; ) {
        const rows = await fixture.inbox(run.id);
        const events = [...rows.map(({ data }) => event(data)), event("parked")];
        const drainedInboxIds = rows.map(({ id }) => id);
        const { notParked } = await fixture.commitTransition(
          worker,
          transition(run.id, { afterSeq: position, events, drainedInboxIds, next: park() }),
        );
        position += events.length;
        seen += rows.length;
        parked = notParked.length === 0;
      }
    }
  }

  test(
    "a worker that writes while it is reaped: accepted events are in the log, refused ones are not",
    async () => {
      const other = await fixture.openAnother();
      for (let round = 0; round < fixture.rounds(10); round += 1) {
        const expired = await fixture.registerWorker({ leaseMs: 1 });
        const run = await fixture.startOwned(expired);
        const reaper = await fixture.registerWorker({}, other);
        await delay(round % 3);
        let accepted = 0;
        const writes = async () => {
          let result: CommitResult["kind"] = "committed";
          for (; result === "committed" && accepted < 10_000; await delay(0)) {
            const append = transition(run.id, { afterSeq: accepted, events: [event(`${accepted}`)] });
            result = (await fixture.store.commit(batch(expired, [append]))).kind;
            if (result === "committed") accepted += 1;
            else expect(result).toBe("fenced");
          }
        };
        const takeOver = async () => {
          await fixture.waitUntil("the worker is reaped", async () => {
            return (await other.heartbeat(reaper)).reapedWorkerIds.includes(expired.workerId);
          });
          expect(await fixture.claimOne(reaper, routesOf(run), other)).toMatchObject({ deliveries: 2 });
          return fixture.log(run.id, other);
        };
        const [logAtTakeover] = await Promise.all([takeOver(), writes()]);
        const log = eventTypes(await fixture.log(run.id));
        expect(log).toEqual(Array.from({ length: accepted }, (_, index) => `${index}`));
        expect(log, "nothing was written after the run was taken over").toEqual(eventTypes(logAtTakeover));
      }
    },
    longTimeoutMs,
  );

  test(
    "a large commit and the deregistration of its worker exclude each other",
    async () => {
      const other = await fixture.openAnother();
      const padding = JSON.stringify("x".repeat(4_000));
      const rounds = fixture.rounds(24);
      for (let round = 0; round < rounds; round += 1) {
        const leaving = await fixture.registerWorker();
        const ids = (await fixture.startOwnedRuns(300, leaving)).map(({ id }) => id);
        const appends = ids.map((id) => transition(id, { events: [event("late", { data: padding })] }));
        const ends = async () => {
          await delay((48 * round) / rounds);
          await other.deregisterWorker(leaving);
          // From here on no write of this worker may appear.
          return fixture.log(ids[0] as string, other);
        };
        const [result, firstLog] = await Promise.all([fixture.store.commit(batch(leaving, appends)), ends()]);
        const expected = result.kind === "committed" ? 1 : 0;
        expect(firstLog, `${result.kind}, round ${round}`).toHaveLength(expected);
        const after = await fixture.store.logs(ids);
        expect([...after.values()].flat()).toHaveLength(expected * ids.length);
      }
    },
    longTimeoutMs,
  );

  test(
    "a message and the end of its recipient at once: either the end is refused, or the message is undeliverable",
    async () => {
      const other = await fixture.openAnother();
      for (let round = 0; round < fixture.rounds(30); round += 1) {
        const worker = await fixture.registerWorker();
        const runs = await fixture.startOwnedRuns(30, worker);
        const endings = runs.map(async ({ id }) => {
          const ending = transition(id, { events: [event("end")], next: finish() });
          return fixture.store.commit(batch(worker, [ending]));
        });
        const sends = async () => {
          await delay(round % 5);
          return Promise.all(runs.map((run) => other.send([newMessage(run.id, "late"), newMessage(run.id, "later")])));
        };
        const [ended, sent] = await Promise.all([Promise.all(endings), sends()]);
        const inboxes = await fixture.store.inbox(runs.map(({ id }) => id));
        for (const [index, { id }] of runs.entries()) {
          const isRefused = ended[index]?.kind === "conflict";
          expect(sent[index]?.undeliverable.length === 0).toBe(isRefused);
          expect(inboxes.get(id) ?? []).toHaveLength(isRefused ? 2 : 0);
        }
      }
    },
    longTimeoutMs,
  );

  test("a burst of calls of all kinds on one instance succeeds", async () => {
    const worker = await fixture.registerWorker();
    const runs = newRuns(300, { due: { kind: "owned" } });
    await fixture.startAll(runs, worker);
    const calls = runs.map(async ({ id }, index) => {
      if (index % 4 === 0) expect(await fixture.store.run(id)).toMatchObject({ id, status: "running" });
      else if (index % 4 === 1) expect(await fixture.store.send([newMessage(id, "x")])).toEqual({ undeliverable: [] });
      else if (index % 4 === 2) expect(await fixture.store.heartbeat(worker)).toMatchObject({ isAlive: true });
      else await fixture.commitTransition(worker, transition(id, { events: [event("go")] }));
    });
    await Promise.all(calls);
    const logs = await fixture.store.logs(runs.map(({ id }) => id));
    expect([...logs.values()].flat()).toHaveLength(75);
    const { ownedWithMessages } = await fixture.store.heartbeat(worker);
    expect(ownedWithMessages).toHaveLength(75);
    expect([...(await fixture.store.ownedWithMessages(worker))].sort()).toEqual([...ownedWithMessages].sort());
    expect(await fixture.store.ownedWithMessages({ ...worker, epoch: worker.epoch - 1 })).toEqual([]);
  });

  test("of several writers at the same position of a log one wins", async () => {
    const other = await fixture.openAnother();
    for (let round = 0; round < fixture.rounds(20); round += 1) {
      const run = await fixture.start({ due: { kind: "held" } });
      const write = (store: Store, name: string): Promise<CommitResult> => {
        const append: Batch = batch(null, [transition(run.id, { events: [event(name)], next: park("paused") })]);
        return store.commit(append);
      };
      const results = await Promise.all([write(fixture.store, "a"), write(other, "b"), write(fixture.store, "c")]);
      expect(results.filter(({ kind }) => kind === "committed")).toHaveLength(1);
      expect(results.filter(({ kind }) => kind === "conflict")).toHaveLength(2);
      expect(await fixture.log(run.id)).toHaveLength(1);
    }
  });

  test(
    "starts, claims, messages and ends of many writers at once leave no task and no message behind",
    async () => {
      const workflow = uniqueName("busy");
      const routes = [{ workflow, version: "" }];
      const stores: Store[] = [fixture.store, await fixture.openAnother()];
      const perStarter = 60;
      const started: NewRun[] = [];
      let starting = stores.length;
      const starters = stores.map(async (store) => {
        for (let index = 0; index < perStarter; index += 5) {
          const runs = newRuns(5, { workflow, priority: index % 3 });
          await fixture.startAll(runs, null, store);
          started.push(...runs);
          await store.send(runs.slice(0, 2).map(({ id }) => newMessage(id, "hello")));
        }
        starting -= 1;
      });
      let ended = 0;
      const workers = stores.map(async (store) => {
        const worker = await fixture.registerWorker({}, store);
        const deadline = systemRuntime.monotonic() + patienceMs;
        while (starting > 0 || ended < started.length) {
          if (systemRuntime.monotonic() > deadline) throw new Error(`Only ${ended} of ${started.length} runs ended.`);
          const { tasks } = await fixture.claim(worker, routes, { limit: 8 }, store);
          if (tasks.length === 0) {
            await delay(2);
            continue;
          }
          for (const { run } of tasks) {
            // A message may arrive after the inbox was read: then the store refuses to end the run, and the loop tries
            // again.
            let isEnded = false;
            while (!isEnded) {
              const rows = (await store.inbox([run.id])).get(run.id) ?? [];
              const ending = transition(run.id, {
                events: [event("end")],
                drainedInboxIds: rows.map(({ id }) => id),
                next: { kind: "finish", status: "completed", output: "1", error: null, startedAt: "now" },
              });
              isEnded = (await store.commit(batch(worker, [ending]))).kind === "committed";
            }
            ended += 1;
          }
        }
      });
      await Promise.all([...starters, ...workers]);
      const ids = started.map(({ id }) => id);
      expect(await fixture.store.runs({ workflow, status: "completed", limit: 1_000 })).toHaveLength(2 * perStarter);
      expect(await fixture.store.tasks(ids)).toEqual([]);
      const inboxes = await fixture.store.inbox(ids);
      expect([...inboxes.values()].flat()).toEqual([]);
      const logs = await fixture.store.logs(ids);
      for (const id of ids) expect(logs.get(id)).toHaveLength(1);
    },
    longTimeoutMs,
  );
}
