/** Names that need quoting everywhere, and texts that a database cannot keep. */
import { workflow } from "pawl";
import { expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { serve } from "./served-pawl.js";

const quick = workflow("quick", async (_ctx, input: unknown) => input);

forMemoryAnd("postgres", (kind) => {
  const names = [
    "a/b",
    "a%2fb",
    "50% off",
    "it's",
    'say "hi"',
    "😀",
    "Case",
    "case",
    "CASE",
    "a?b#c",
    "a\\b",
    "ü",
    "u\u0308",
    "a+b c",
    "..",
    "{run}",
    "__proto__",
    "robert'); DROP TABLE pawl_runs;--",
  ];

  test("names of workflows and queues may contain anything that a name may, and are told apart byte for byte", async () => {
    const served = await serve({ kind, registered: names.map((name) => workflow(name, async () => name)) });
    for (const name of names) {
      const path = `/api/v1/workflows/${encodeURIComponent(name)}`;
      if (name === "..") continue; // A browser takes these two dots for the folder above, also when they are encoded.
      const started = await served.post(`${path}/runs`, {});
      expect([name, started.status]).toEqual([name, 201]);
      expect((await served.get(`/api/v1/runs/${started.json.id}/result`)).json.output).toBe(name);
      expect((await served.get(`${path}/metrics`)).json).toMatchObject({ workflow: name, runs: { total: 1 } });
      const listed = (await served.get(`/api/v1/runs?workflow=${encodeURIComponent(name)}`)).json.runs;
      expect(listed.map(({ id }: { id: string }) => id)).toEqual([started.json.id]);
      expect((await served.post(`/api/v1/queues/${encodeURIComponent(name)}/pause`, {})).status).toBe(200);
    }
    const paused = (await served.get("/api/v1/queues")).json.queues.filter(
      (queue: { paused: unknown }) => queue.paused,
    );
    expect(paused.length).toBe(names.length - 1);
  });

  test("texts that a database cannot keep find nothing or are refused, and are no failure of the server", async () => {
    const served = await serve({ kind, registered: [quick] });
    const { id } = await served.pawl.start(quick, 1);
    const texts = [
      "%00",
      "a%00b",
      "%EF%BF%BF",
      "%F0%9F%98%80",
      "%0A",
      "'",
      "%5C",
      "%25",
      "_",
      "a".repeat(3_000),
      "%20",
    ];
    const paths = texts.flatMap((text) => [
      ...["workflow", "tag", "idempotencyKey", "fingerprint", "parentId"].map((name) => `runs?${name}=${text}`),
      ...[
        `runs?heroType=${text}&heroId=${text}`,
        `runs/${text}`,
        `workflows/${text}/metrics`,
        `figures?workflow=${text}`,
      ],
    ]);
    for (const path of paths) {
      const { status } = await served.get(`/api/v1/${path}`);
      expect([path.slice(0, 80), [200, 400, 404].includes(status) ? "fine" : status]).toEqual([
        path.slice(0, 80),
        "fine",
      ]);
    }
    const strings = ["\u0000", "a\u0000b", "\ud800", "\uffff", "😀", "\n", "'", "a".repeat(3_000)];
    const bodies = strings.flatMap((text): [string, object][] => [
      ["workflows/quick/runs", { idempotencyKey: text }],
      ["workflows/quick/runs", { hero: { type: text, id: text } }],
      ["workflows/quick/runs", { tags: [text] }],
      ["workflows/quick/runs", { by: text.slice(0, 200), reason: text }],
      ["workflows/quick/runs", { input: { [text]: text } }],
      [`workflows/${encodeURIComponent(text.replace("\ud800", "\ufffd"))}`, { queue: text.slice(0, 200) }],
      [`runs/${id}/signals`, { name: text.slice(0, 200), payload: text }],
      [`runs/${id}/cancel`, { by: text.slice(0, 200), reason: text }],
      ["signals", { workflow: "quick", idempotencyKey: text, name: "x" }],
      ["signals", { workflow: text.slice(0, 200), hero: { type: text, id: text }, name: "x" }],
      [`queues/quick/pause`, { by: text.slice(0, 200), reason: text }],
      ["prune", { olderThan: "1 day", workflow: text, dryRun: true }],
      ["verify", { run: text }],
      ["graphs", { name: text.slice(0, 200), nodes: [{ name: text.slice(0, 200), job: text.slice(0, 200) }] }],
    ]);
    for (const [path, body] of bodies) {
      const { status } = await served.post(`/api/v1/${path}`, body);
      expect([path, JSON.stringify(body).slice(0, 80), status < 500 ? "fine" : status]).toEqual([
        path,
        JSON.stringify(body).slice(0, 80),
        "fine",
      ]);
    }
    // What was accepted can be read.
    for (const path of ["runs?limit=1000&explain=1", "queues", "workflows", "errors", "counts"])
      expect([path, (await served.get(`/api/v1/${path}`)).status]).toEqual([path, 200]);
  });
});
