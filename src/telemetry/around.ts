/**
 * Channels whose listeners take part instead of only hearing: tracing makes the span of a step active while its code runs,
 * and notes with a new run what span it was started in. Where nothing listens, a call or a start costs one comparison.
 */
import { channel } from "node:diagnostics_channel";
import type { Birth } from "../store/contract/store.js";
import { type ToldRun, toldRun } from "./tell.js";

/** Code of a run is about to be called, on the channel `pawl:call`. */
export interface ToldCall extends ToldRun {
  /** The step whose body it is; null: the handler of the workflow. */
  readonly node: string | null;
  readonly attempt: number | null;
  /** A listener may replace it by a function that does something around it. */
  call: () => unknown;
}

/** Runs are about to be made, on the channel `pawl:start`. */
export interface ToldStart {
  readonly workflow: string;
  /** A listener may add some. */
  readonly tags: string[];
}

const callChannel = channel("pawl:call");
const startChannel = channel("pawl:start");

export const callsAreHeard = (): boolean => callChannel.hasSubscribers;

export function callInside(
  birth: Birth,
  of: { readonly key: string; readonly attempt: number } | null,
  call: () => unknown,
): unknown {
  const told: ToldCall = { ...toldRun(birth), node: of?.key ?? null, attempt: of?.attempt ?? null, call };
  callChannel.publish(told);
  return told.call();
}

/** The tags, and those that listeners add. */
export function tagsOfStart(workflow: string, tags: string[]): readonly string[] {
  if (startChannel.hasSubscribers) startChannel.publish({ workflow, tags } satisfies ToldStart);
  return tags;
}
