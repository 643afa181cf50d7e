/**
 * A file service in several processes: some start runs and know only names, some execute them, some read. The programs
 * are those of examples/files; the object store that they use records their effects.
 */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { RunFailedError, SerializationError, WorkflowNotFoundError } from "pawl";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { versionFor } from "../../examples/files/rollout.js";
import { forEachStore } from "../support/databases.js";
import { until } from "../support/waiting.js";
import { compiledFile, compileExamples, removeCompiled } from "./service-process.js";
import { World } from "./service-world.js";

/** The steps of a run and how each attempt at them ended. */
async function stepsOf(world: World, id: string): Promise<string[]> {
  return (await world.pawl.run(id).executions()).map(({ step, outcome }) => `${step}: ${outcome}`);
}

const readme = new URL("../../examples/files/README.md", import.meta.url);
const processed = ["download: success", "process: success", "upload: success"];

forEachStore(() => {
  let world: World;

  beforeAll(compileExamples);
  afterAll(removeCompiled);
  beforeEach(async () => {
    world = await World.open();
    for (const key of ["a.txt", "b.txt", "c.txt"]) world.store.put(`docs/${key}`, `${key} \r\n`);
  });
  afterEach(() => world.close());

  describe("the whole service", () => {
    test("a process without workflow code starts a run, a worker in another process executes it, and a third process reports it", async () => {
      await world.begin("setup", ["process_file"]).ended;
      const id = await world.triggerOne("docs", "a.txt");
      expect(await world.check(id)).toMatch(/^Still pending\. .*There is no live worker at all\.$/);

      const download = world.store.hold("GET docs/a.txt");
      const worker = await world.worker("worker-1");
      expect(await download.arrived).toBe(worker.pid);
      expect(await world.check(id)).toBe("Still running.");

      download.release();
      const result = { processedKey: "processed/a.txt", sizeBytes: 6 };
      expect(await world.pawl.run(id).result()).toEqual(result);
      expect(await world.check(id)).toBe(`Completed: ${JSON.stringify(result)}`);
      expect(world.store.text("docs/processed/a.txt")).toBe("a.txt\n");
      expect(world.store.requests.map(({ what }) => what)).toEqual(["GET docs/a.txt", "PUT docs/processed/a.txt"]);
    });

    test("a web handler answers as soon as the run is durable, and another handler reports its status", async () => {
      const download = world.store.hold("GET docs/a.txt");
      await world.worker("worker-1");
      const web = await world.web();
      const { status, body } = await web.post("/uploads", { bucket: "docs", key: "a.txt" });
      expect([status, body]).toEqual([202, { run: expect.any(String), warning: null }]);
      const path = `/runs/${body.run}`;
      await download.arrived;
      expect((await web.get(path)).body).toEqual({ status: "running", output: null, error: null });

      download.release();
      await until(async () => (await web.get(path)).body.status === "completed");
      const output = { processedKey: "processed/a.txt", sizeBytes: 6 };
      expect((await web.get(path)).body).toEqual({ status: "completed", output, error: null });
      expect(await web.process.terminate()).toMatchObject({ code: 0, signal: null, stderr: "" });
    });

    test("a process that waits for the result of another process gets it; after a timeout it may wait again", async () => {
      const upload = world.store.hold("PUT docs/processed/a.txt");
      await world.worker("worker-1");
      const id = await world.triggerOne("docs", "a.txt");
      await upload.arrived;
      expect(await world.check(id, "--wait", "1ms")).toMatch(
        /^TIMEOUT: .*It goes on; call result\(\) again later, or explain\(\) to see why\.$/,
      );

      const patient = world.check(id, "--wait", "30s");
      upload.release();
      expect(await patient).toBe("Completed: { processedKey: 'processed/a.txt', sizeBytes: 6 }");
    });
  });

  describe("setting up and registering", () => {
    test("setup is idempotent, and works in a process without workflow code before there is a worker", async () => {
      for (const _ of [1, 2])
        expect(await world.begin("setup", ["zip_files", "send_emails"]).ended).toMatchObject({ code: 0, stderr: "" });
      expect((await world.pawl.queues()).map(({ name, workflows }) => [name, workflows])).toEqual([
        ["send_emails", ["send_emails"]],
        ["zip_files", ["zip_files"]],
      ]);
    });

    test("a worker serves all workflows that its modules export, and prints their names", async () => {
      const worker = await world.worker("worker-1", { serves: ["workflows", "emails"] });
      expect(worker.stdout).toBe("worker-1 serves process_file, publish_file, zip_files, send_emails\n");
      const [record] = await world.pawl.workers();
      expect(record).toMatchObject({ name: "worker-1", pid: worker.pid, live: true });
      expect(record?.workflows.map(({ name }) => name)).toEqual([
        "process_file",
        "publish_file",
        "send_emails",
        "zip_files",
      ]);

      const zip = await world.pawl.workflow("zip_files").trigger({ bucket: "docs", prefix: "" });
      const mail = await world.pawl.workflow("send_emails").trigger({ to: ["ada", "bob"], text: "hi" });
      expect(await zip.result()).toEqual({ archivePath: "archives/.gz", fileCount: 3 });
      expect(gunzipSync(world.store.objects.get("docs/archives/.gz") as Buffer).toString()).toBe(
        "a.txt \r\nb.txt \r\nc.txt \r\n",
      );
      expect(await mail.result()).toEqual({ sent: 2 });
      expect(await stepsOf(world, mail.id)).toEqual(["send to ada: success", "send to bob: success"]);
    });

    test("each workflow is executed by the process that serves it", async () => {
      const [files, emails] = await Promise.all([
        world.worker("files"),
        world.worker("emails", { serves: ["emails"] }),
      ]);
      const zip = await world.pawl.workflow("zip_files").trigger({ bucket: "docs", prefix: "a" });
      const mail = await world.pawl.workflow("send_emails").trigger({ to: ["ada"], text: "hi" });
      await Promise.all([zip.result(), mail.result()]);
      const askedBy = (beginning: string) =>
        world.store.requests.filter(({ what }) => what.startsWith(beginning)).map(({ pid }) => pid);
      expect(askedBy("PUT outbox/")).toEqual([emails.pid]);
      expect(new Set([...askedBy("GET docs/"), ...askedBy("PUT docs/")])).toEqual(new Set([files.pid]));
    });
  });

  describe("answers to a trigger", () => {
    test("a name that was never registered is refused, and nothing is started", async () => {
      await world.worker("worker-1");
      const unknown = await world.begin("trigger", ["docs", "a.txt", "--workflow", "proces_file"]).ended;
      expect(unknown).toMatchObject({ code: 1, stdout: "" });
      expect(unknown.stderr).toMatch(/^WORKFLOW_NOT_FOUND: .*"proces_file"/);
      const web = await world.web();
      const { status, body } = await web.post("/uploads", { bucket: "docs", key: "a.txt", workflow: "proces_file" });
      expect([status, body.code]).toEqual([404, "WORKFLOW_NOT_FOUND"]);
      await expect(world.pawl.workflow("proces_file").trigger({})).rejects.toThrow(WorkflowNotFoundError);
      expect((await world.pawl.runs()).runs).toEqual([]);
    });

    test("a start without a live worker is accepted with a warning on the handle and in the log", async () => {
      await world.pawl.createWorkflow("process_file");
      const web = await world.web();
      const first = await web.post("/uploads", { bucket: "docs", key: "a.txt" });
      const warning = 'Workflow "process_file" was started, but no live worker has it; the run waits for one.';
      expect(first).toMatchObject({ status: 202, body: { warning } });
      await until(() => web.process.stderr !== "");
      expect(web.process.stderr).toBe(`${warning}\n`);

      await world.worker("worker-1");
      await world.pawl.run(first.body.run).result();
      expect((await web.post("/uploads", { bucket: "docs", key: "b.txt" })).body.warning).toBeNull();
      expect(web.process.stderr).toBe(`${warning}\n`);
    });

    test("an input that cannot be stored is refused by start()", async () => {
      await world.pawl.createWorkflow("process_file");
      const start = world.pawl.workflow("process_file").trigger({ bucket: "docs", key: () => "a.txt" });
      await expect(start).rejects.toThrow(SerializationError);
      expect((await world.pawl.runs()).runs).toEqual([]);
    });
  });

  describe("several workers and their deaths", () => {
    test("two worker processes share the work, and no file is processed twice", async () => {
      const keys = Array.from({ length: 12 }, (_, n) => `${n}.txt`);
      for (const key of keys) world.store.put(`docs/${key}`, key);
      world.store.holdUntilAskedBy(2, "GET docs/");
      const workers = await Promise.all([1, 2].map((n) => world.worker(`worker-${n}`, { concurrency: 1 })));
      const started = await world.trigger("docs", ...keys);
      await Promise.all(started.map(({ id }) => world.pawl.run(id).result()));

      const pids = keys.flatMap((key) => world.store.askedBy(`GET docs/${key}`));
      expect(pids).toHaveLength(12);
      expect(new Set(pids)).toEqual(new Set(workers.map(({ pid }) => pid)));
      expect(keys.map((key) => world.store.askedBy(`PUT docs/processed/${key}`).length)).toEqual(keys.map(() => 1));
    });

    test("when a worker is killed in the middle of a run, the other completes it and does not repeat completed steps", async () => {
      const upload = world.store.hold("PUT docs/processed/a.txt");
      const workers = await Promise.all(["worker-1", "worker-2"].map((name) => world.worker(name)));
      const id = await world.start("a.txt");
      const pid = await upload.arrived;
      const [victim, other] = workers[0]?.pid === pid ? workers : workers.reverse();
      expect(await victim?.kill()).toMatchObject({ signal: "SIGKILL" });

      expect(await world.pawl.run(id).result()).toEqual({ processedKey: "processed/a.txt", sizeBytes: 6 });
      expect(world.store.askedBy("GET docs/a.txt")).toEqual([victim?.pid]);
      expect(world.store.askedBy("PUT docs/processed/a.txt")).toEqual([victim?.pid, other?.pid]);
      // Steps that only compute are visible in the output of the workers.
      await other?.terminate();
      expect([victim, other].map((one) => one?.stdout.includes("processing a.txt"))).toEqual([true, false]);
    });

    test("when the only worker is killed, its run stays open and continues after the worker is restarted", async () => {
      const upload = world.store.hold("PUT docs/processed/a.txt");
      const first = await world.worker("worker-1");
      const id = await world.start("a.txt");
      await upload.arrived;
      await first.kill();
      expect(await world.check(id)).toBe("Still running.");

      const again = await world.worker("worker-1");
      await world.pawl.run(id).result();
      expect(world.store.askedBy("GET docs/a.txt")).toEqual([first.pid]);
      expect(world.store.askedBy("PUT docs/processed/a.txt")).toEqual([first.pid, again.pid]);
      expect((await world.pawl.runs()).runs.map((run) => run.id)).toEqual([id]);
    });

    test("on SIGTERM a worker finishes the current step, releases its run and exits, and the other worker continues immediately", async () => {
      const download = world.store.hold("GET docs/a.txt");
      const leaving = await world.worker("leaving");
      const id = await world.start("a.txt");
      await download.arrived;
      const staying = await world.worker("staying");
      leaving.signal("SIGTERM");
      await leaving.until(/is stopping/);
      // The worker claims nothing new.
      const next = await world.start("b.txt");
      await world.pawl.run(next).result();
      expect(world.store.askedBy("GET docs/b.txt")).toEqual([staying.pid]);

      download.release();
      expect(await leaving.ended).toMatchObject({ code: 0, signal: null, stderr: "" });
      expect(leaving.stdout).toMatch(/leaving has stopped\n$/);
      await world.pawl.run(id).result();
      expect(world.store.askedBy("GET docs/a.txt")).toEqual([leaving.pid]);
      expect(world.store.askedBy("PUT docs/processed/a.txt")).toEqual([staying.pid]);
      expect(await stepsOf(world, id)).toEqual(processed);
      expect((await world.pawl.workers()).map(({ name, live }) => [name, live]).sort()).toEqual([
        ["leaving", false],
        ["staying", true],
      ]);
    });
  });

  describe("errors", () => {
    test("a permanent error fails the run immediately, and the corrected file is a new run", async () => {
      await world.worker("worker-1");
      const wrong = await world.start("wrong.txt");
      const failure = await world.pawl
        .run(wrong)
        .result()
        .catch((error) => error);
      expect(failure).toBeInstanceOf(RunFailedError);
      expect(failure).toMatchObject({ runId: wrong, cause: { message: "File not found: docs/wrong.txt" } });
      expect(await world.check(wrong)).toBe("Failed: File not found: docs/wrong.txt");
      expect(await stepsOf(world, wrong)).toEqual(["download: failed_by_exception"]);

      const right = await world.start("a.txt");
      await world.pawl.run(right).result();
      expect(right).not.toBe(wrong);
      expect(await stepsOf(world, right)).toEqual(processed);
      expect(await world.pawl.run(wrong).status()).toBe("failed");
    });

    test("a transient error parks the run, and its worker executes other runs meanwhile", async () => {
      world.store.refuse("GET docs/a.txt", { status: 429, retryAfter: 3_600 });
      await world.worker("worker-1", { concurrency: 1 });
      const id = await world.start("a.txt");
      await world.untilStatus(id, "waiting");
      expect((await world.pawl.run(id).get()).waitingFor).toEqual([{ kind: "retry", step: "download", attempt: 2 }]);
      const { since, until: dueAt } = await world.pawl.run(id).explain();
      expect(Number(dueAt) - Number(since)).toBeGreaterThanOrEqual(3_600_000);
      await world.pawl.run(await world.start("b.txt")).result();
      expect(await world.pawl.run(id).status()).toBe("waiting");
    });

    test("after a transient error the same run is retried at the time that the service asked for", async () => {
      world.store.refuse("GET docs/a.txt", { status: 503, retryAfter: 1 });
      await world.worker("worker-1");
      const id = await world.start("a.txt");
      await world.pawl.run(id).result();
      expect(await stepsOf(world, id)).toEqual(["download: reattempted_by_exception", ...processed]);
      expect((await world.pawl.runs()).runs.map((run) => run.id)).toEqual([id]);
      const [first, second] = await world.pawl.run(id).executions();
      expect(Number(second?.finishedAt) - Number(first?.finishedAt)).toBeGreaterThanOrEqual(1_000);
    });
  });

  describe("pausing", () => {
    const publish = () =>
      world.pawl.workflow("publish_file").trigger({ bucket: "docs", key: "a.txt", approver: "ada" });

    test("a run that asked for approval stays paused until a web handler completes the step with its result", async () => {
      const worker = await world.worker("worker-1");
      const run = await publish();
      await world.untilStatus(run.id, "paused");
      expect(await world.check(run.id)).toBe("Paused: Waiting for approval");
      expect(world.store.text(`outbox/${run.id}`)).toContain("May a.txt be published?");

      const web = await world.web();
      expect((await web.post(`/runs/${run.id}/approval`, { by: "ada" })).status).toBe(202);
      expect(await run.result()).toEqual({ publishedKey: "a.txt", approvedBy: "ada" });
      expect(world.store.askedBy(`PUT outbox/${run.id}`)).toEqual([worker.pid]);
      expect((await web.post(`/runs/${run.id}/approval`, { by: "bob" })).body.code).toBe("INVALID_STATE");
    });

    test("a signal makes the paused step check again", async () => {
      await world.worker("worker-1");
      const run = await publish();
      await world.untilStatus(run.id, "paused");
      world.store.put(`approvals/${run.id}`, "bob");
      await world.operator("signal", run.id, "approved");
      expect(await run.result()).toEqual({ publishedKey: "a.txt", approvedBy: "bob" });
      expect(world.store.askedBy(`GET approvals/${run.id}`)).toHaveLength(2);
    });

    test("a paused step checks again by itself after each interval", async () => {
      await world.worker("worker-1", { env: { RECHECK_AFTER: "100ms" } });
      const run = await publish();
      await until(() => world.store.askedBy(`GET approvals/${run.id}`).length >= 3);
      world.store.put(`approvals/${run.id}`, "cleo");
      expect(await run.result()).toEqual({ publishedKey: "a.txt", approvedBy: "cleo" });
      expect(world.store.askedBy(`PUT outbox/${run.id}`)).toHaveLength(1);
    });

    test("when an operator pauses an executing run, the current step is recorded and nothing starts until the run is resumed", async () => {
      const download = world.store.hold("GET docs/a.txt");
      await Promise.all(["worker-1", "worker-2"].map((name) => world.worker(name)));
      const id = await world.start("a.txt");
      await download.arrived;
      await world.operator("pause", id, "--reason", "the disk is full");
      // The worker has received the command.
      await until(async () => (await world.pawl.run(id).history()).some(({ type }) => type === "run.paused"));
      download.release();
      await world.untilStatus(id, "paused");
      expect(await world.check(id)).toBe("Paused: the disk is full");
      expect(await stepsOf(world, id)).toEqual(["download: success"]);

      await world.operator("resume", id);
      await world.pawl.run(id).result();
      expect(world.store.requests.map(({ what }) => what)).toEqual(["GET docs/a.txt", "PUT docs/processed/a.txt"]);
    });
  });

  describe("versions", () => {
    test("two versions under two names run concurrently, each by the worker that has it", async () => {
      const [first, second] = await Promise.all([
        world.worker("first"),
        world.worker("second", { serves: ["workflowsV2"] }),
      ]);
      const one = await world.triggerOne("docs", "a.txt", "--workflow", "process_file");
      const two = await world.triggerOne("docs", "a.txt", "--workflow", "process_file_v2");
      expect(await world.pawl.run(one).result()).toMatchObject({ processedKey: "processed/a.txt" });
      expect(await world.pawl.run(two).result()).toMatchObject({ processedKey: "processed/a.txt.gz" });
      expect(world.store.askedBy("PUT docs/processed/a.txt")).toEqual([first.pid]);
      expect(world.store.askedBy("PUT docs/processed/a.txt.gz")).toEqual([second.pid]);
      expect(gunzipSync(world.store.objects.get("docs/processed/a.txt.gz") as Buffer).toString()).toBe("a.txt\n");
    });

    test("blue-green: new starts go to the new version, and the old version drains on its own workers, which then stop", async () => {
      const download = world.store.hold("GET docs/a.txt");
      const blue = await world.worker("blue-1");
      const old = await world.triggerOne("docs", "a.txt");
      await download.arrived;
      const [blue2, green] = await Promise.all([
        world.worker("blue-2"),
        world.worker("green", { serves: ["workflowsV2"] }),
      ]);

      const fresh = await world.triggerOne("docs", "b.txt", "--workflow", "process_file_v2");
      await world.pawl.run(fresh).result();
      expect(world.store.askedBy("GET docs/b.txt")).toEqual([green.pid]);

      // The first of the old workers stops while it executes a run; the other old worker continues the run, not the new
      // code.
      blue.signal("SIGTERM");
      await blue.until(/is stopping/);
      expect(await world.check(old)).toBe("Still running.");
      download.release();
      expect(await blue.ended).toMatchObject({ code: 0, signal: null });
      expect(await world.pawl.run(old).result()).toMatchObject({ processedKey: "processed/a.txt" });
      expect(world.store.askedBy("GET docs/a.txt")).toEqual([blue.pid]);
      expect(world.store.askedBy("PUT docs/processed/a.txt")).toEqual([blue2.pid]);

      // Drained: no run of the old version is open.
      expect((await world.pawl.metrics("process_file")).runs).toMatchObject({ active: 0, completed: 1 });
      expect(await blue2.terminate()).toMatchObject({ code: 0, signal: null });
      expect((await world.pawl.metrics("process_file_v2")).workers).toMatchObject([{ name: "green", live: true }]);
    });

    test("gradual rollout: the chosen share of the files goes to the new version, and always the same files", async () => {
      await Promise.all([world.worker("stable"), world.worker("canary", { serves: ["workflowsV2"] })]);
      const keys = Array.from({ length: 30 }, (_, n) => `file-${n}.txt`);
      for (const key of keys) world.store.put(`docs/${key}`, key);
      const started = await world.trigger("docs", ...keys, "--canary", "0.2");
      await Promise.all(started.map(({ id }) => world.pawl.run(id).result()));

      const chosen = keys.filter((key) => versionFor(key, 0.2) === "process_file_v2");
      expect(chosen.length).toBeGreaterThan(0);
      expect(chosen.length).toBeLessThan(keys.length / 2);
      expect(keys.filter((key) => world.store.objects.has(`docs/processed/${key}.gz`))).toEqual(chosen);
      expect(keys.filter((key) => !world.store.objects.has(`docs/processed/${key}`))).toEqual(chosen);
      // A larger share includes the files of the smaller one.
      expect(chosen.every((key) => versionFor(key, 0.5) === "process_file_v2")).toBe(true);
      // Metrics are compared before the share is raised.
      expect((await world.pawl.metrics("process_file_v2")).runs).toMatchObject({ completed: chosen.length });
    });

    test("pinned versions: a run waits for the release that started it, and new starts go to the newest release", async () => {
      const serves = ["pinned"] as const;
      const first = await world.worker("first", { serves, env: { RELEASE: "1" } });
      const old = await world.start("a.txt", "review_file");
      await world.untilStatus(old, "waiting");
      const second = await world.worker("second", { serves, env: { RELEASE: "2" } });
      expect(await first.terminate()).toMatchObject({ code: 0 });
      const fresh = await world.start("b.txt", "review_file");
      for (const id of [old, fresh]) await world.operator("signal", id, "reviewed", '{"by": "ada"}');
      expect(await world.pawl.run(fresh).result()).toEqual({ release: "2", reviewedBy: "ada" });
      expect(await world.check(old)).toMatch(
        /no live worker has workflow "review_file" version "1"\. Live workers have other versions of it: "2"/,
      );

      const again = await world.worker("first", { serves, env: { RELEASE: "1" } });
      expect(await world.pawl.run(old).result()).toEqual({ release: "1", reviewedBy: "ada" });
      expect(world.store.askedBy("GET docs/a.txt")).toEqual([first.pid]);
      expect(world.store.askedBy("PUT docs/reviewed/a.txt")).toEqual([again.pid]);
      expect(world.store.askedBy("PUT docs/reviewed/b.txt")).toEqual([second.pid]);
    });

    test("a version can be part of the workflow name in any format", async () => {
      const names = ["1_0_0", "2.1.0", "2024_02_07", "a3f2c1b", "prod", "staging"].map((one) => `process_file_${one}`);
      const file = join(dirname(compiledFile("workflows")), "named.mjs");
      writeFileSync(
        file,
        `import { workflow } from "pawl";
           export const all = ${JSON.stringify(names)}.map((name) =>
             workflow(name, (ctx, { key }) => ctx.step("process", () => key + " by " + name)));`,
      );
      await world.worker("worker-1", { serves: [file as `/${string}`] });
      for (const name of names) {
        const run = await world.pawl.workflow(name).trigger({ bucket: "docs", key: "a.txt" });
        expect(await run.result()).toBe(`a.txt by ${name}`);
      }
    });
  });

  test("the commands of the README run as a script", async () => {
    const { code, stdout, stderr } = await world.script(readme);
    expect(code, stderr).toBe(0);
    expect(stdout.match(/Completed: \{ processedKey: '[^']+'/g)).toEqual([
      "Completed: { processedKey: 'processed/report.txt'",
      "Completed: { processedKey: 'processed/report.txt'",
      "Completed: { processedKey: 'processed/report.txt.gz'",
    ]);
    expect(stdout).toMatch(/^process_file_v2: runs 1, succeeded 100 %/m);
  });

  test("a process without workflow code reports the metrics of each workflow", async () => {
    await Promise.all([world.worker("worker-1"), world.worker("worker-2", { serves: ["workflowsV2"] })]);
    const download = world.store.hold("GET docs/c.txt");
    const started = await world.trigger("docs", "a.txt", "b.txt", "wrong.txt", "c.txt");
    await Promise.allSettled(started.slice(0, 3).map(({ id }) => world.pawl.run(id).result()));
    await download.arrived;
    expect((await world.check()).split("\n")).toEqual([
      expect.stringMatching(/^process_file: runs 4, succeeded 67 %, mean \d+ ms, due 0, live workers 1$/),
      "process_file_v2: runs 0, succeeded -, mean -, due 0, live workers 1",
      "publish_file: runs 0, succeeded -, mean -, due 0, live workers 1",
      "zip_files: runs 0, succeeded -, mean -, due 0, live workers 1",
    ]);
  });
}, ["postgres"]);
