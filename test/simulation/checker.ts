/** Judges the evidence of a world. It shares no code with the worker or the client. */
import { checkChildren } from "./checks/children.js";
import { Facts } from "./checks/facts.js";
import { checkGatherings } from "./checks/gatherings.js";
import { checkItems } from "./checks/items.js";
import { checkLimits } from "./checks/limits.js";
import { checkLogs } from "./checks/logs.js";
import { checkOwnership } from "./checks/ownership.js";
import { checkEnds, checkLeaks, checkOutputs, checkPauses, checkResults, checkStarts } from "./checks/runs.js";
import { checkSchedules } from "./checks/schedules.js";
import { checkSignals } from "./checks/signals.js";
import { checkConflicts, checkExpiry, checkRetries } from "./checks/starts.js";
import { checkSteps } from "./checks/steps.js";
import { checkTimers } from "./checks/timers.js";
import type { Evidence, Report, Violation } from "./evidence.js";

export function findViolations(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const report: Report = (invariant, run, text) => void violations.push({ invariant, run, text });
  const facts = new Facts(evidence, checkOwnership(evidence, report));
  checkStarts(evidence, report);
  checkEnds(evidence, report);
  checkLogs(evidence, report);
  checkSteps(evidence, facts, report);
  checkSignals(evidence, facts, report);
  checkTimers(evidence, facts, report);
  checkChildren(evidence, facts, report);
  checkPauses(evidence, facts, report);
  checkResults(evidence, report);
  checkOutputs(evidence, facts, report);
  checkLeaks(evidence, report);
  checkItems(evidence, facts, report);
  checkSchedules(evidence, report);
  checkLimits(evidence, facts, report);
  checkGatherings(evidence, report);
  checkConflicts(evidence, facts, report);
  checkExpiry(evidence, facts, report);
  checkRetries(evidence, facts, report);
  return violations;
}
