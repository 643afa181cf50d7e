/** What people can do with one step of a run. The API has these commands only for steps that a class or graph declares. */
import type { Answer } from "../api/api.js";
import { actionsFor, type Run, type RunAction } from "./run-actions.js";

type Step = Answer<"getRunStep">;

/** The step that a resume, a skip or an output is about. */
const isStuckAt = (run: Run, step: Step): boolean => {
  const place = run.failedStep ?? run.currentStep;
  return place === step.node || place === step.name || run.waitingFor.some((waiting) => waiting.step === step.node);
};

const resumeAt = (step: Step): RunAction => ({
  id: "resumeAt",
  label: "Resume at this step",
  icon: "play",
  key: "",
  permission: "resume",
  path: "resume-at",
  isGuarded: true,
  body: { step: step.node },
  fits: ({ status }) => status === "paused" && step.structure === "chain" && !/[/#]/.test(step.node),
  consequence: () => `The run continues at step “${step.name}”, at once. The steps after it run again.`,
  cli: (run) => `pawl resume ${run.id} --at ${JSON.stringify(step.node)}`,
  typescript: (run) => `await pawl.run(${JSON.stringify(run.id)}).resumeAt(${JSON.stringify(step.node)});`,
});

const reattempt = (step: Step): RunAction => ({
  id: "reattempt",
  label: "Try this node again",
  icon: "retry",
  key: "",
  permission: "retry",
  path: "reattempt",
  isGuarded: true,
  body: { node: step.node },
  fits: ({ status }) => {
    const isOpen = !["completed", "failed", "canceled"].includes(status);
    const state = step.executions.at(-1)?.state;
    return isOpen && step.structure === "graph" && (state === "failed" || state === "skipped" || state === "scheduled");
  },
  consequence: () => `Node “${step.name}” is tried again at once. The nodes that depend on it wait for its result.`,
  cli: (run) => `pawl reattempt ${run.id} ${JSON.stringify(step.node)}`,
  typescript: (run) => `await pawl.run(${JSON.stringify(run.id)}).reattempt(${JSON.stringify(step.node)});`,
});

/** The actions that make sense for this step now, the most likely first. */
export function actionsForStep(run: Run, step: Step): readonly RunAction[] {
  const ofRun = actionsFor(run).filter(({ id }) => id === "resume" || id === "complete" || id === "skip");
  return [
    ...(isStuckAt(run, step) ? ofRun : []),
    ...[reattempt(step), resumeAt(step)].filter((action) => action.fits(run)),
  ];
}
