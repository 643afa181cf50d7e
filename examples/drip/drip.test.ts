import { isDeepStrictEqual } from "node:util";
import { AlreadyActiveError, type RunHandle } from "pawl";
import { type TestPawl, testPawl } from "pawl/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd } from "../../test/support/effort.js";
import { crashAndVerify, storyOf } from "../harness.js";
import { dripWorkflow, type Ending, type User } from "./drip.js";
import { Post } from "./post.js";

const ada: User = { id: "1", email: "ada@example.com" };
const hero = { type: "User", id: ada.id };

forMemoryAnd("mysql", (kind) => {
  const post = new Post();
  const drip = dripWorkflow(post);
  let database: TestDatabase;
  let t: TestPawl;
  let run: RunHandle<User, Ending>;

  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  beforeEach(async () => {
    post.effects.forget();
    t = await testPawl({ workflows: [drip], store: database.url, startAt: Date.UTC(2030, 0, 1) });
    run = await t.pawl.start(drip, ada, { hero });
  });
  afterEach(async () => {
    expect((await t.pawl.verify()).differences).toEqual([]);
    await t.close();
  });

  test("a user who does nothing gets a welcome, a reminder on the third day and a goodbye on the tenth", async () => {
    await t.advance("1 day 23h");
    expect(post.effects.all).toEqual(["welcome to ada@example.com"]);
    await t.advance("1h");
    expect(post.effects.all).toEqual(["welcome to ada@example.com", "reminder to ada@example.com"]);
    await t.speedrun(run);
    expect(await run.result()).toBe("silent");
    expect(post.effects.all.at(-1)).toBe("goodbye to ada@example.com");

    expect(await storyOf(run)).toEqual([
      "run.started",
      "step.completed welcome",
      "wait.started signal:activated",
      "timer.started two_days",
      "timer.fired two_days",
      "wait.withdrawn signal:activated",
      "step.completed reminder",
      "wait.started signal:unsubscribed",
      "wait.timed_out signal:unsubscribed",
      "step.completed goodbye",
      "run.completed",
    ]);
    const days = (await run.history())
      .filter(({ type }) => type === "step.completed")
      .map(({ node, at }) => [node, dayOf(at)]);
    expect(days).toEqual([
      ["welcome", 1],
      ["reminder", 3],
      ["goodbye", 10],
    ]);
  });

  test("a user who activates the account in time is not reminded", async () => {
    await t.advance("1 day");
    await run.signal("activated", { plan: "team" });
    await t.speedrun(run);
    expect(await run.result()).toBe("activated");
    expect(await storyOf(run)).toEqual([
      "run.started",
      "step.completed welcome",
      "wait.started signal:activated",
      "timer.started two_days",
      "signal.received",
      "wait.completed signal:activated",
      "wait.withdrawn two_days",
      "wait.started signal:unsubscribed",
      "wait.timed_out signal:unsubscribed",
      "step.completed goodbye",
      "run.completed",
    ]);
    expect(post.effects.all).toEqual(["welcome to ada@example.com", "goodbye to ada@example.com"]);
  });

  test("an activation after the reminder has no effect", async () => {
    await t.advance("3 days");
    await run.signal("activated", { plan: "team" });
    await t.speedrun(run);
    expect(await run.result()).toBe("silent");
  });

  test("a user who unsubscribes gets no more mail", async () => {
    await t.advance("5 days");
    await run.signal("unsubscribed");
    await t.speedrun(run);
    expect(await run.result()).toBe("unsubscribed");
    expect(post.effects.all).toEqual(["welcome to ada@example.com", "reminder to ada@example.com"]);
  });

  test("a user has one campaign at a time", async () => {
    await expect(t.pawl.start(drip, ada, { hero })).rejects.toThrow(AlreadyActiveError);
    await t.speedrun(run);
    const second = await t.pawl.start(drip, ada, { hero });
    await t.speedrun(second);
    expect(await second.result()).toBe("silent");
    expect(post.effects.all.length).toBe(6);
  });
});

forMemoryAnd("mysql", (kind) => {
  const post = new Post();
  const drip = dripWorkflow(post);
  const points = kind === "memory" || kind === "sqlite" ? "all" : 8;
  let database: TestDatabase;

  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  test("a campaign has the same result wherever its worker dies", async () => {
    const { output, verification } = await crashAndVerify(drip, ada, {
      store: database.url,
      hero,
      points,
      setup: () => post.effects.forget(),
      compare: (undisturbed, crashed) => {
        expect(post.effects.all.map((mail) => mail.split(" ")[0])).toEqual(["welcome", "reminder", "goodbye"]);
        expect(post.effects.repeats).toBeLessThanOrEqual(1);
        return isDeepStrictEqual(undisturbed, crashed);
      },
    });
    expect(output).toBe("silent");
    expect(verification.differences).toEqual([]);
  });

  test("a campaign of a user who activates has the same result wherever its worker dies", async () => {
    const { output, verification } = await crashAndVerify(drip, ada, {
      store: database.url,
      hero,
      points,
      setup: () => post.effects.forget(),
      drive: async (run) => {
        const { waitingFor } = await run.get();
        const awaited = waitingFor.flatMap((wait) => (wait.kind === "signal" ? wait.names : []));
        if (awaited.includes("activated")) await run.signal("activated", { plan: "team" }, { key: "click-1" });
      },
      compare: (undisturbed, crashed) => {
        expect(post.effects.all.map((mail) => mail.split(" ")[0])).toEqual(["welcome", "goodbye"]);
        expect(post.effects.repeats).toBeLessThanOrEqual(1);
        return isDeepStrictEqual(undisturbed, crashed);
      },
    });
    expect(output).toBe("activated");
    expect(verification.differences).toEqual([]);
  });
});

/** The first day is 1. */
const dayOf = (at: Date) => (Number(at) - Date.UTC(2030, 0, 1)) / 86_400_000 + 1;
