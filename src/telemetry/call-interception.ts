/**
 * Channels whose listeners may change what happens: tracing makes the span of a step active while its code runs, and
 * tags a new run with the span that it was started in. Without a listener, a call or a start costs one comparison.
 */
import { channel } from "node:diagnostics_channel";
import type { RunSpec } from "../store/contract/store.js";
import { type PublishedRun, publishedRunOf } from "./publish.js";

/** Published on the channel `pawl:call` just before a worker calls code of a run. */
export interface InterceptedCall extends PublishedRun {
  /** The step whose body is called, or null if the workflow's handler is called. */
  readonly node: string | null;
  readonly attempt: number | null;
  /** The call itself; a listener may replace it with a function that wraps it. */
  call: () => unknown;
}

/** Published on the channel `pawl:start` just before runs are created. */
export interface InterceptedStart {
  readonly workflow: string;
  /** The tags of the new run; a listener may add some. */
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

/** Returns the tags together with those that listeners add. */
export function collectStartTags(workflow: string, tags: string[]): readonly string[] {
  if (startChannel.hasSubscribers) startChannel.publish({ workflow, tags } satisfies InterceptedStart);
  return tags;
}
