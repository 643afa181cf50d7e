/**
 * User code that throws, rejects, returns garbage or never returns, in every place where Pawl calls it: the worker
 * keeps running, another run completes, and the run itself ends, pauses with a reason, or can be canceled.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type Logger, Pawl, type RunHandle, workflow } from "pawl";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { openStore, type StoreKind, testDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { type Call, type UserCode, userCodeCases } from "./hostile-pieces.js";
import { collectFatalErrors } from "./unhandled.js";

beforeEach(() => {
  // Pawl reports a failed logger or listener on the console.
  for (const method of ["warn", "error"] as const) vi.spyOn(console, method).mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
});

const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const throwing = (what: () => unknown) => () => {
  throw what();
};

const settling: Record<string, Call> = {
  "throws an error": throwing(() => new Error("hostile")),
  "throws nothing": throwing(() => undefined),
  "throws what cannot be looked at": throwing(revoked),
  "throws a frozen error without a message": throwing(() => Object.freeze(Object.create(Error.prototype))),
  rejects: () => Promise.reject(new Error("hostile")),
  "rejects with nothing": () => Promise.reject(),
  "rejects later": async () => {
    await new Promise((resolve) => setImmediate(resolve));
    throw new Error("hostile");
  },
  "answers with a symbol": () => Symbol("hostile"),
  "answers with a function": () => () => {},
  "answers with a cycle": () => cyclic,
  "answers with NaN": () => Number.NaN,
  "answers with null": () => null,
  "answers with what cannot be looked at": revoked,
  "answers with a promise whose constructor throws": () =>
    Object.defineProperty(Promise.resolve(1), "constructor", { get: throwing(() => new Error("hostile")) }),
};

const fine = workflow("fine", (ctx) => ctx.step("s", () => "fine"));

async function hostilePawl(piece: UserCode, kind: StoreKind) {
  const database = await testDatabase(kind);
  const store = await openStore(kind, database.url);
  await store.migrate();
  const pawl = new Pawl(store, piece.logger ?? silent, { onError: piece.onError });
  const worker = pawl.worker({ workflows: [...piece.workflows, fine], jobs: piece.jobs ?? [], grace: 20, poll: 20 });
  await worker.start();
  onTestFinished(async () => {
    await pawl.close();
    await database.drop();
  });
  const goesOn = async () => {
    expect(await (await pawl.start(fine)).result({ timeout: "100s" })).toBe("fine");
    expect(worker.phase).toBe("running");
  };
  return { pawl, goesOn };
}

const settled = new Set(["completed", "failed", "canceled", "paused"]);

async function untilSettled(run: RunHandle): Promise<string> {
  for (;;) {
    const status = await run.status();
    if (settled.has(status)) return status;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function endsOrPauses(define: (call: Call) => UserCode, call: Call, kind: StoreKind = "memory"): Promise<void> {
  const fatal = collectFatalErrors();
  const piece = define(call);
  const { pawl, goesOn } = await hostilePawl(piece, kind);
  const options = piece.hero === undefined ? {} : { hero: piece.hero };
  const run = await pawl.workflow("hostile").trigger({}, options);
  const status = await untilSettled(run);
  const { because, text } = await run.explain();
  if (status === "paused") expect(because).toBe("paused");
  if (status === "failed") expect((await run.get()).error?.message).toEqual(expect.any(String));
  expect(text.length).toBeGreaterThan(20);
  await goesOn();
  expect(fatal).toEqual([]);
}

describe.each(Object.entries(userCodeCases))("%s", (_piece, define) => {
  test.each(Object.entries(settling))("that %s", (_name, call) => endsOrPauses(define, call));

  test("that never returns", async () => {
    const fatal = collectFatalErrors();
    let entered = () => {};
    const wasCalled = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const piece = define(() => {
      entered();
      return new Promise(() => {});
    });
    const { pawl, goesOn } = await hostilePawl(piece, "memory");
    const run = await pawl.workflow("hostile").trigger({}, piece.hero === undefined ? {} : { hero: piece.hero });
    await Promise.race([wasCalled, untilSettled(run)]);
    await goesOn();
    expect((await run.explain()).text).not.toContain("nothing that is known");
    if (piece.cannotBeCanceled !== true) {
      // The run may have ended already, because Pawl does not wait for every kind of user code.
      await run.cancel().catch(() => {});
      expect(await untilSettled(run)).toMatch(/canceled|completed|failed|paused/);
    }
    await goesOn();
    expect(fatal).toEqual([]);
  });
});

describe.each([
  "the handler",
  "the body of a transaction",
  "a compensation",
  "the schema of an input",
  "skipIf",
] as const)("on SQLite, %s", (name) => {
  test.each(["throws an error", "rejects", "answers with a symbol"])("that %s", (behaviour) =>
    endsOrPauses(userCodeCases[name] as (call: Call) => UserCode, settling[behaviour] as Call, "sqlite"),
  );
});

describe.each(["pawl:event", "pawl:run"])("a listener of %s", (channel) => {
  test.each(Object.entries(settling))("that %s still receives later events, and runs continue", async (_name, call) => {
    const fatal = collectFatalErrors();
    let heard = 0;
    const listener = () => {
      heard += 1;
      return call();
    };
    subscribe(channel, listener);
    onTestFinished(() => void unsubscribe(channel, listener));
    const { goesOn } = await hostilePawl({ workflows: [] }, "memory");
    await goesOn();
    const before = heard;
    await goesOn();
    expect(heard).toBeGreaterThan(before);
    expect(unsubscribe(channel, listener)).toBe(true);
    const after = heard;
    await goesOn();
    expect(heard).toBe(after);
    expect(fatal).toEqual([]);
  });
});

test("ctx.log keeps the other members of a custom logger, and its level may change at run time", async () => {
  const lines: unknown[] = [];
  class Own {
    level = "warn";
    debug(text: unknown) {
      if (this.level === "debug") lines.push(text);
    }
    info() {}
    warn() {}
    error() {}
    child() {
      return "a child";
    }
  }
  const logger = new Own();
  const { pawl } = await hostilePawl({ workflows: [], logger: logger as Logger }, "memory");
  const children: unknown[] = [];
  const logs = workflow("logs", (ctx) => void children.push((ctx.log as unknown as Own).child()));
  const worker = await pawl.worker({ workflows: [logs] }).start();
  logger.level = "debug";
  await (await pawl.start(logs)).result({ timeout: "100s" });
  expect(children).toEqual(["a child"]);
  expect(lines.length).toBeGreaterThan(0);
  await worker.stop();
});
