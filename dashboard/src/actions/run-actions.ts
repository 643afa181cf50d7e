/**
 * What people can do with a run: when it makes sense, what it causes, and the same as a command and as TypeScript. The
 * header of a run, its menu, the keyboard and the palette are made from this list.
 */
import type { Answer } from "../api/api.js";
import type { Permission } from "../shell/me.js";
import type { IconName } from "../ui/icon.js";

export type Run = Answer<"getRun">;

export interface RunAction {
  readonly id: "signal" | "resume" | "complete" | "skip" | "retry" | "pause" | "cancel" | "resumeAt" | "reattempt";
  readonly label: string;
  readonly icon: IconName;
  readonly key: string;
  readonly permission: Permission;
  /** The last part of the path of the API. */
  readonly path: string;
  readonly isDangerous?: boolean;
  /** Which field the dialog asks for, besides the reason. */
  readonly asks?: "signal" | "output" | "force";
  /** What the body of the command has besides what the dialog asks for. */
  readonly body?: Readonly<Record<string, unknown>>;
  /**
   * Whether the API refuses the command if the log has grown since it was shown. Not for what means the same in every open run,
   * such as a cancel: the log of a run that is being executed grows all the time.
   */
  readonly isGuarded: boolean;
  fits(run: Run): boolean;
  consequence(run: Run): string;
  cli(run: Run): string;
  typescript(run: Run): string;
}

const isOpen = ({ status }: Run) => !["completed", "failed", "canceled"].includes(status);
const handle = (run: Run) => `pawl.run(${JSON.stringify(run.id)})`;
const at = ({ failedStep, currentStep }: Run) => failedStep ?? currentStep;

export const runActions: readonly RunAction[] = [
  {
    id: "resume",
    label: "Resume",
    icon: "play",
    key: "r",
    permission: "resume",
    path: "resume",
    isGuarded: true,
    fits: ({ status }) => status === "paused",
    consequence: (run) =>
      at(run) === null
        ? "The run continues where it was paused."
        : `The run continues, and step “${at(run)}” runs again.`,
    cli: (run) => `pawl resume ${run.id}`,
    typescript: (run) => `await ${handle(run)}.resume();`,
  },
  {
    id: "retry",
    label: "Retry",
    icon: "retry",
    key: "r",
    permission: "retry",
    path: "retry",
    isGuarded: false,
    fits: ({ status }) => status === "failed",
    consequence: (run) =>
      `A new run continues from ${run.failedStep === null ? "where this one failed" : `step “${run.failedStep}”`}, with the results of the completed steps. This run stays as it is.`,
    cli: (run) => `pawl retry ${run.id}`,
    typescript: (run) => `const retry = await ${handle(run)}.retry();`,
  },
  {
    id: "signal",
    label: "Signal",
    icon: "signal",
    key: "s",
    permission: "signal",
    path: "signals",
    asks: "signal",
    isGuarded: false,
    fits: isOpen,
    consequence: () =>
      "The run gets the signal once. If it does not wait for it yet, the signal is kept until it does.",
    cli: (run) => `pawl signal ${run.id} <name> '<json>'`,
    typescript: (run) => `await ${handle(run)}.signal("name", payload);`,
  },
  {
    id: "pause",
    label: "Pause",
    icon: "pause",
    key: "p",
    permission: "pause",
    path: "pause",
    isGuarded: false,
    fits: (run) => isOpen(run) && run.status !== "paused",
    consequence: () =>
      "What is running now finishes and is recorded. Then nothing more begins until the run is resumed.",
    cli: (run) => `pawl pause ${run.id}`,
    typescript: (run) => `await ${handle(run)}.pause("reason");`,
  },
  {
    id: "complete",
    label: "Complete the step with an output",
    icon: "check",
    key: "o",
    permission: "resume",
    path: "resume",
    asks: "output",
    isGuarded: true,
    fits: (run) => run.status === "paused" && run.failedStep !== null,
    consequence: (run) =>
      `Step “${run.failedStep}” counts as completed with this output, without running, and the run continues.`,
    cli: (run) => `pawl resume ${run.id} --output '<json>'`,
    typescript: (run) => `await ${handle(run)}.resume({ output });`,
  },
  {
    id: "skip",
    label: "Skip the step",
    icon: "skip",
    key: "k",
    permission: "skip",
    path: "skip",
    isGuarded: true,
    fits: ({ status }) => status === "paused" || status === "waiting",
    consequence: (run) =>
      `${at(run) === null ? "The step that the run is stuck at" : `Step “${at(run)}”`} is skipped for good, and the run continues after it.`,
    cli: (run) => `pawl skip ${run.id}`,
    typescript: (run) => `await ${handle(run)}.skip();`,
  },
  {
    id: "cancel",
    label: "Cancel",
    icon: "stop",
    key: "c",
    permission: "cancel",
    path: "cancel",
    isDangerous: true,
    asks: "force",
    isGuarded: false,
    fits: isOpen,
    consequence: () =>
      "The run ends as canceled, and so do its children. Steps that have a compensation are undone. A canceled run cannot be continued.",
    cli: (run) => `pawl cancel ${run.id}`,
    typescript: (run) => `await ${handle(run)}.cancel("reason");`,
  },
];

/** The actions that make sense for a run now, the most likely first. */
export const actionsFor = (run: Run): readonly RunAction[] => runActions.filter((action) => action.fits(run));
