/**
 * Channels whose listeners take part instead of only hearing: tracing makes the span of a step active while its code runs,
 * and notes with a new run what span it was started in. Where nothing listens, a call or a start costs one comparison.
 */
import { channel } from "node:diagnostics_channel";
import type { RunSpec } from "../store/contract/store.js";
import { type PublishedRun, publishedRunOf } from "./publish.js";

/** Code of a run is about to be called, on the channel `pawl:call`. */
export interface InterceptedCall extends PublishedRun {
  /** The step whose body it is; null: the handler of the workflow. */
  readonly node: string | null;
  readonly attempt: number | null;
  /** A listener may replace it by a function that does something around it. */
  call: () => unknown;
}

/** Runs are about to be made, on the channel `pawl:start`. */
export interface InterceptedStart {
  readonly workflow: string;
  /** A listener may add some. */
  readonly tags: string[];
}

const callChannel = channel("pawl:call");
const startChannel = channel("pawl:start");

export const hasCallListeners = (): boolean => callChannel.hasSubscribers;

export function callWithInterceptors(
  run: RunSpec,
  step: { readonly key: string; readonly attempt: number } | null,
  call: () => unknown,
): unknown {
  const message: InterceptedCall = {
    ...publishedRunOf(run),
    node: step?.key ?? null,
    attempt: step?.attempt ?? null,
    call,
  };
  callChannel.publish(message);
  return message.call();
}

/** The tags, and those that listeners add. */
export function collectStartTags(workflow: string, tags: string[]): readonly string[] {
  if (startChannel.hasSubscribers) startChannel.publish({ workflow, tags } satisfies InterceptedStart);
  return tags;
}
