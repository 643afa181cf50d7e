/** What a run has gathered, for people. */
import { readGathering } from "../../core/gathering/run-gathering.js";
import type { RunRecord } from "../../store/contract/store.js";

/** The starts that a run has gathered. */
export interface GatheredInfo {
  /** "debounce": starts with the option `debounce`. "batch": starts of a workflow with `batch`. */
  readonly by: "debounce" | "batch";
  /** The key of these starts. */
  readonly key: string;
  /** How many starts there were. */
  readonly starts: number;
  /** When the first of them was made. */
  readonly firstAt: Date;
  /** When the last of them was made. */
  readonly lastAt: Date;
  /** Whether further starts may be added, because no worker has begun the run. */
  readonly isOpen: boolean;
  /** On a handle of one start of a batch: its position, from 0; otherwise null. */
  readonly position: number | null;
}

/** An unreadable text is treated as missing, because it is only for display. */
export function gatheredInfoOf(run: RunRecord): GatheredInfo | null {
  try {
    const gathering = readGathering(run.schedule);
    if (gathering === null) return null;
    const { gathering: by, key, calls, firstAt, lastAt, begun = false } = gathering;
    const isOpen = !begun && run.status === "pending";
    return { by, key, starts: calls, firstAt: new Date(firstAt), lastAt: new Date(lastAt), isOpen, position: null };
  } catch {
    return null;
  }
}
