import { describe, expect, test } from "vitest";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { nextPhase, type PhaseEvent, PhaseTracker, type TurnPhase } from "./turn-phase.js";

const steps = new Set(["job"]);
const activePhases = {
  waking: { kind: "waking", endedJobSteps: null },
  "waking, recording ended jobs": { kind: "waking", endedJobSteps: steps },
  running: { kind: "running", endedJobSteps: null },
  "running, recording ended jobs": { kind: "running", endedJobSteps: steps },
  compensating: { kind: "compensating" },
  failing: { kind: "failing", lastStep: "on_failure" },
} as const;
const endingPhases = (kind: "parking" | "finishing") =>
  Object.fromEntries(Object.entries(activePhases).map(([name, from]) => [`${kind} from ${name}`, { kind, from }]));
const phases: Record<string, TurnPhase> = {
  ...activePhases,
  ...endingPhases("parking"),
  ...endingPhases("finishing"),
  ended: { kind: "ended" },
};

const events: Record<PhaseEvent["type"], PhaseEvent> = {
  "jobs ended": { type: "jobs ended", steps },
  "code called": { type: "code called" },
  "compensation started": { type: "compensation started" },
  "last step started": { type: "last step started", step: "on_failure" },
  "parking started": { type: "parking started" },
  "finishing started": { type: "finishing started" },
  "turn end refused": { type: "turn end refused" },
  "turn ended": { type: "turn ended" },
};

/** Phase → event → next phase. Every other pair of phase and event leaves the phase unchanged. */
const table: Record<string, Partial<Record<PhaseEvent["type"], string>>> = {
  waking: { "jobs ended": "waking, recording ended jobs", "code called": "running" },
  "waking, recording ended jobs": {
    "jobs ended": "waking, recording ended jobs",
    "code called": "running, recording ended jobs",
  },
  running: { "compensation started": "compensating", "last step started": "failing" },
  "running, recording ended jobs": { "compensation started": "compensating", "last step started": "failing" },
  compensating: { "last step started": "failing" },
  failing: {},
  ended: {},
};
for (const name of Object.keys(activePhases)) {
  Object.assign(table[name] as object, {
    "parking started": `parking from ${name}`,
    "finishing started": `finishing from ${name}`,
    "turn ended": "ended",
  });
  for (const kind of ["parking", "finishing"])
    table[`${kind} from ${name}`] = { "turn end refused": name, "turn ended": "ended" };
}

describe.each(Object.keys(phases))("the phase %s", (name) => {
  test.each(Object.keys(events) as PhaseEvent["type"][])("after the event %s", (type) => {
    const expected = table[name]?.[type];
    const next = nextPhase(phases[name] as TurnPhase, events[type]);
    expect(next).toEqual(expected === undefined ? null : phases[expected]);
  });
});

test("the table covers every phase", () => {
  expect(Object.keys(table).sort()).toEqual(Object.keys(phases).sort());
});

/** The events that lead from the start of a turn to a phase. */
const eventsLeadingTo: Record<string, PhaseEvent["type"][]> = {
  waking: [],
  running: ["code called"],
  "recording ended jobs": ["jobs ended", "code called"],
  compensating: ["code called", "compensation started"],
  failing: ["code called", "last step started"],
  parking: ["code called", "parking started"],
  finishing: ["code called", "finishing started"],
  ended: ["turn ended"],
};

const logs: Record<string, NewEvent[]> = {
  active: [],
  paused: [newEvent("run.paused", {}, { reason: "why" })],
  canceled: [newEvent("run.cancel_requested", {}, {})],
  expired: [newEvent("run.expired", {}, { error: { name: "TimeoutError", message: "late" } })],
};

const facts = ["none", "isStopping", "isHandingOver", "mustRestartCode", "isPausing", "isOver"] as const;

/** The four kinds of keys: a step, a step whose job has ended, a compensation, the last step. */
const keys = { s: "step", j: "job", c: "step#compensate", l: "on_failure" };

function startableSteps(phaseName: string, log: string, fact: (typeof facts)[number]): string {
  const state = fold((logs[log] as NewEvent[]).map((event, index) => ({ ...event, seq: index + 1, at: 1 })));
  const turn = { isOver: fact === "isOver" };
  const phase = new PhaseTracker(turn, state);
  for (const type of eventsLeadingTo[phaseName] as PhaseEvent["type"][]) phase.on(events[type]);
  if (fact !== "none" && fact !== "isOver") phase[fact] = true;
  return Object.entries(keys)
    .map(([letter, key]) => (phase.mayStart(key) ? letter : "-"))
    .join("");
}

/** For each phase and state of the run: the keys that may start without any flag, and those while the worker stops. */
const startableByPhase: Record<string, Record<string, string>> = {
  waking: { active: "sjcl ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
  running: { active: "sjcl ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
  "recording ended jobs": { active: "sjcl ----", paused: "-j-- ----", canceled: "---- ----", expired: "-j-- ----" },
  compensating: { active: "--c- --c-", paused: "---- ----", canceled: "--c- --c-", expired: "--c- --c-" },
  failing: { active: "---l ---l", paused: "---l ---l", canceled: "---- ----", expired: "---l ---l" },
  parking: { active: "---- ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
  finishing: { active: "---- ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
  ended: { active: "---- ----", paused: "---- ----", canceled: "---- ----", expired: "---- ----" },
};

describe.each(Object.keys(eventsLeadingTo))("what may start in the phase %s", (phaseName) => {
  test.each(Object.keys(logs))("when the run is: %s", (log) => {
    expect(`${startableSteps(phaseName, log, "none")} ${startableSteps(phaseName, log, "isStopping")}`).toBe(
      startableByPhase[phaseName]?.[log],
    );
    expect(startableSteps(phaseName, log, "isOver")).toBe("----");
  });
});

test.each(["isHandingOver", "mustRestartCode", "isPausing"] as const)(
  "while %s, only compensations and the last step may start",
  (fact) => {
    expect(startableSteps("running", "active", fact)).toBe("----");
    expect(startableSteps("compensating", "active", fact)).toBe("--c-");
    expect(startableSteps("failing", "active", fact)).toBe("---l");
  },
);
