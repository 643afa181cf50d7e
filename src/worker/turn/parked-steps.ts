import { hasParkedSteps } from "../../core/run/parking-note.js";
import type { WholeTurn } from "./ports.js";

/** Whether the store may have steps of the run that wait for slots without a worker, so that the end of the run must delete them. */
export const mayHaveParkedSteps = ({ slots, run }: ParkedStepsFacts): boolean =>
  slots.hasLeftAny || hasParkedSteps(run.waiting);

type ParkedStepsFacts = Pick<WholeTurn, "slots" | "run">;
