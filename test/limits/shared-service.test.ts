/** A limit of steps over several workflows and processes, judged by the service that they call. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { killAllProcesses, LibraryProcess } from "../support/library-process.js";
import { silent } from "../support/virtual-worlds.js";

const concurrency = 10;
const runsOfEach = 20;
const callCount = runsOfEach * (1 + 2 + 2);
/** If no call comes in for this time, the oldest is answered, and counts as one that was not among ten. */
const patienceMs = 1_000;

/** Answers the oldest call as soon as ten are in, so nine others are always in while the next slot is handed over. */
class Service {
  readonly #calls: (() => void)[] = [];
  readonly #server = createServer((_request, response) => {
    this.#calls.push(() => response.end("done"));
    this.most = Math.max(this.most, this.#calls.length);
    if (this.#calls.length >= concurrency) {
      this.answeredWhenFull += 1;
      this.#answerOldest();
    }
    // There is no work for ten calls any more.
    if (this.answered + this.#calls.length === callCount) while (this.#calls.length > 0) this.#answerOldest();
    this.#waitForNext();
  });
  #timer: NodeJS.Timeout | undefined;
  most = 0;
  answered = 0;
  answeredWhenFull = 0;

  #waitForNext(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#answerOldest();
      if (this.#calls.length > 0) this.#waitForNext();
    }, patienceMs);
  }

  #answerOldest(): void {
    const answer = this.#calls.shift();
    if (answer === undefined) return;
    this.answered += 1;
    answer();
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

class Caller extends LibraryProcess {
  readonly ready = this.told((message) => (message === "ready" ? true : undefined));
}

forEachStore<StoreKind>(
  (kind) => {
    test("ten calls at a time of three workflows in two processes: never more, and rarely fewer while there is work", async () => {
      const database = await testDatabase(kind);
      onTestFinished(database.drop);
      const service = new Service();
      onTestFinished(() => service.close());
      const url = await service.listen();
      const pawl = await connect(database.url, { logger: silent });
      onTestFinished(() => pawl.close());
      onTestFinished(killAllProcesses);
      const callers = [1, 2].map(
        () => new Caller("processes/programs/limit-caller", { database: database.url, service: url }),
      );
      await Promise.all(callers.map(({ ready }) => ready));
      const runs = [];
      for (const name of ["one_call", "two_calls", "calls_in_turn"])
        runs.push(...(await pawl.workflow(name).triggerMany(Array(runsOfEach).fill(undefined))));
      await Promise.all(runs.map((run) => run.result()));
      expect(service.answered).toBe(callCount);
      expect(service.most).toBe(concurrency);
      expect(service.answeredWhenFull).toBeGreaterThanOrEqual(0.8 * (callCount - concurrency));
      await Promise.all(callers.map((caller) => caller.terminate()));
      expect(callers.map(({ output }) => output)).toEqual(["", ""]);
    });
  },
  ["sqlite", "postgres", "mysql"],
);
