import { describe, expect, test } from "vitest";
import type { RunEvent } from "../log/log-windows.js";
import { consumersOf, isMessage, messageOf } from "./message-words.js";

const event = (seq: number, type: string, data: unknown = {}, node: string | null = null): RunEvent =>
  ({ seq, type, node, attempt: null, outcome: null, at: "2026-01-31T09:00:00.000Z", data }) as RunEvent;

const log = [
  event(1, "run.started"),
  event(2, "wait.started", { names: ["approved"], mode: "any", timeoutMs: 60_000 }, "signal:approved"),
  event(3, "command.accepted", { command: "signal", by: "ada", reason: "It is fine." }),
  event(4, "signal.received", { name: "approved", payload: { by: "finance" } }),
  event(5, "wait.completed", { signals: [4] }, "signal:approved"),
  event(6, "signal.received", { name: "aproved" }),
];
const wordsOf = (seq: number) => messageOf(log[seq - 1] as RunEvent, consumersOf(log));

describe("the messages of a log", () => {
  test("are what others sent, and what the run waited for", () => {
    expect(log.filter(isMessage).map(({ seq }) => seq)).toEqual([2, 3, 4, 6]);
  });

  test("tell which event took a signal, and which signals are kept", () => {
    expect(wordsOf(4)).toMatchObject({
      what: "signal approved",
      state: "taken by event 5",
      details: '{"by":"finance"}',
    });
    expect(wordsOf(6)).toMatchObject({ what: "signal aproved", state: "kept" });
  });

  test("tell how a wait ended, and who gave a command and why", () => {
    expect(wordsOf(2)).toMatchObject({ what: "wait for approved", state: "completed by event 5" });
    expect(wordsOf(3)).toMatchObject({ what: "command signal", by: "ada", details: "It is fine." });
  });

  test("say that their details are hidden or large", () => {
    const hidden = messageOf(event(1, "signal.received", { $pawl: "hidden" }), new Map());
    expect(hidden).toMatchObject({ what: "signal", details: "hidden" });
    const large = messageOf(event(1, "signal.received", { $pawl: "large", bytes: 70_000 }), new Map());
    expect(large.details).toBe("70 kB, in the log");
  });
});
