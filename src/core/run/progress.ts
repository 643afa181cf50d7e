/** Encodes and decodes the progress of a run or a step, which is stored in the same row as the cursor. */
import type { Progress } from "./stored-schema.js";

const noProgress: Progress = { done: 0, total: null, message: null };

export const writeProgress = (progress: Progress): string => JSON.stringify(progress);

export const readProgress = (text: string | null): Progress =>
  text === null ? noProgress : (JSON.parse(text) as Progress);
