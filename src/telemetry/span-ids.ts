/**
 * Ids of traces and spans that every process computes from the ids of runs: the spans that different processes create for
 * one run fit together, and no id has to be stored or sent.
 */

import { sha256Hex } from "../core/naming/ids.js";
import { randomHex } from "../runtime/random-hex.js";
import type { Runtime } from "../runtime/runtime.js";
import { systemRuntime } from "../runtime/system.js";

/** Returns the id of the trace that contains a root run and all its descendants. */
export const traceIdOf = (rootRunId: string): string => rootRunId.replaceAll("-", "");

/** @param id the id of a run or of a step execution */
export const spanIdOf = (id: string): string => sha256Hex(id).slice(0, 16);

interface RequestedIds {
  traceId: string | null;
  spanId: string | null;
}

const requestedIds: RequestedIds = { traceId: null, spanId: null };

/**
 * Gives these ids to the first span that `start` creates, if its provider has a {@link RunIdGenerator}.
 *
 * @param ids the trace id is null for a span that has the trace of its parent
 */
export function withIds<Result>(ids: Readonly<RequestedIds>, start: () => Result): Result {
  Object.assign(requestedIds, ids);
  try {
    return start();
  } finally {
    requestedIds.traceId = requestedIds.spanId = null;
  }
}

/**
 * An id generator for the tracer provider. Spans of runs get ids that all processes agree on, so that they form one tree;
 * all other spans get random ids.
 *
 * @example
 * ```ts
 * import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
 *
 * const provider = new BasicTracerProvider({ idGenerator: new RunIdGenerator() });
 * ```
 */
export class RunIdGenerator {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime = systemRuntime) {
    this.#runtime = runtime;
  }

  /** The id of the next trace: 32 hexadecimal digits. Called by the tracer provider. */
  generateTraceId(): string {
    return takeRequestedId("traceId") ?? randomId(this.#runtime, 16);
  }

  /** The id of the next span: 16 hexadecimal digits. Called by the tracer provider. */
  generateSpanId(): string {
    return takeRequestedId("spanId") ?? randomId(this.#runtime, 8);
  }
}

/** Returns each requested id only once, because a span processor may start other spans meanwhile. */
function takeRequestedId(key: keyof RequestedIds): string | null {
  const id = requestedIds[key];
  requestedIds[key] = null;
  return id;
}

/** The specification forbids an id that consists of zeros. */
function randomId(runtime: Runtime, bytes: number): string {
  const id = randomHex(runtime, bytes);
  return /^0+$/.test(id) ? `01${id.slice(2)}` : id;
}
