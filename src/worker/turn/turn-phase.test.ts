import { describe, expect, test } from "vitest";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { nextPhase, type PhaseEvent, PhaseTracker, type TurnPhase } from "./turn-phase.js";

const steps = new Set(["job"]);
const active = {
  waking: { kind: "waking", endedJobSteps: null },
  "waking, settling": { kind: "waking", endedJobSteps: steps },
  running: { kind: "running", endedJobSteps: null },
  "running, settling": { kind: "running", endedJobSteps: steps },
  compensating: { kind: "compensating" },
  failing: { kind: "failing", lastStep: "on_failure" },
} as const;
const endingPhases = (kind: "parking" | "finishing") =>
  Object.fromEntries(Object.entries(active).map(([name, from]) => [`${kind} from ${name}`, { kind, from }]));
const phases: Record<string, TurnPhase> = {
  ...active,
  ...endingPhases("parking"),
  ...endingPhases("finishing"),
  ended: { kind: "ended" },
};

const events: Record<PhaseEvent["type"], PhaseEvent> = {
  "jobs ended": { type: "jobs ended", steps },
  "code called": { type: "code called" },
  "undoing began": { type: "undoing began" },
  "last step began": { type: "last step began", step: "on_failure" },
  "parking began": { type: "parking began" },
  "finishing began": { type: "finishing began" },
  "leaving refused": { type: "leaving refused" },
  "turn ended": { type: "turn ended" },
};

/** Phase → event → the phase that it leads to. Every pair that is not in here has no place. */
const table: Record<string, Partial<Record<PhaseEvent["type"], string>>> = {
  waking: { "jobs ended": "waking, settling", "code called": "running" },
  "waking, settling": { "jobs ended": "waking, settling", "code called": "running, settling" },
  running: { "undoing began": "compensating", "last step began": "failing" },
  "running, settling": { "undoing began": "compensating", "last step began": "failing" },
  compensating: { "last step began": "failing" },
  failing: {},
  ended: {},
};
for (const name of Object.keys(active)) {
  Object.assign(table[name] as object, {
    "parking began": `parking from ${name}`,
    "finishing began": `finishing from ${name}`,
    "turn ended": "ended",
  });
  for (const kind of ["parking", "finishing"])
    table[`${kind} from ${name}`] = { "leaving refused": name, "turn ended": "ended" };
}

describe.each(Object.keys(phases))("%s", (name) => {
  test.each(Object.keys(events) as PhaseEvent["type"][])("%s", (type) => {
    const expected = table[name]?.[type];
    const next = nextPhase(phases[name] as TurnPhase, events[type]);
    expect(next).toEqual(expected === undefined ? null : phases[expected]);
  });
});

test("every phase is in the table", () => {
  expect(Object.keys(table).sort()).toEqual(Object.keys(phases).sort());
});

/** What leads to a phase from the beginning of a turn. */
const eventsLeadingTo: Record<string, PhaseEvent["type"][]> = {
  waking: [],
  running: ["code called"],
  settling: ["jobs ended", "code called"],
  compensating: ["code called", "undoing began"],
  failing: ["code called", "last step began"],
  parking: ["code called", "parking began"],
  finishing: ["code called", "finishing began"],
  ended: ["turn ended"],
};

const logs: Record<string, NewEvent[]> = {
  "nothing else": [],
  paused: [newEvent("run.paused", {}, { reason: "why" })],
  canceled: [newEvent("run.cancel_requested", {}, {})],
  expired: [newEvent("run.expired", {}, { error: { name: "TimeoutError", message: "late" } })],
};

const facts = ["none", "isStopping", "isHandingOver", "mustRestartCode", "isPausing", "isOver"] as const;

/** Which of these four may begin: a step, the job that has ended, a compensation, the last step. */
const keys = { s: "step", j: "job", c: "step#compensate", l: "on_failure" };

function startableSteps(phaseName: string, log: string, fact: (typeof facts)[number]): string {
  const state = fold((logs[log] as NewEvent[]).map((one, index) => ({ ...one, seq: index + 1, at: 1 })));
  const turn = { isOver: fact === "isOver" };
  const phase = new PhaseTracker(turn, state);
  for (const type of eventsLeadingTo[phaseName] as PhaseEvent["type"][]) phase.on(events[type]);
  if (fact !== "none" && fact !== "isOver") phase[fact] = true;
  return Object.entries(keys)
    .map(([letter, key]) => (phase.mayStart(key) ? letter : "-"))
    .join("");
}

/** For each phase and state of the run: what may begin when nothing else has come up, and what when the worker stops. */
const startableByPhase: Record<string, Record<string, string>> = {
  waking: { "nothing else": "sjcl ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
  running: { "nothing else": "sjcl ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
  settling: { "nothing else": "sjcl ----", paused: "-j-- ----", canceled: "---- ----", expired: "-j-- ----" },
  compensating: { "nothing else": "--c- --c-", paused: "---- ----", canceled: "--c- --c-", expired: "--c- --c-" },
  failing: { "nothing else": "---l ---l", paused: "---l ---l", canceled: "---- ----", expired: "---l ---l" },
  parking: { "nothing else": "---- ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
  finishing: { "nothing else": "---- ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
  ended: { "nothing else": "---- ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
};

describe.each(Object.keys(eventsLeadingTo))("what may begin while %s", (way) => {
  test.each(Object.keys(logs))("%s", (log) => {
    expect(`${startableSteps(way, log, "none")} ${startableSteps(way, log, "isStopping")}`).toBe(startableByPhase[way]?.[log]);
    expect(startableSteps(way, log, "isOver")).toBe("----");
  });
});

test.each(["isHandingOver", "mustRestartCode", "isPausing"] as const)(
  "nothing new begins while %s, but what unwinds the run",
  (fact) => {
    expect(startableSteps("running", "nothing else", fact)).toBe("----");
    expect(startableSteps("compensating", "nothing else", fact)).toBe("--c-");
    expect(startableSteps("failing", "nothing else", fact)).toBe("---l");
  },
);
