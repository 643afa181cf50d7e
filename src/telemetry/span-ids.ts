/**
 * Ids of traces and spans that every process computes for itself: so the spans that different processes make of one run
 * fit together, and nothing has to be stored or sent along.
 */

import { sha256Hex } from "../core/naming/ids.js";
import { randomHex } from "../runtime/random-hex.js";
import type { Runtime } from "../runtime/runtime.js";
import { systemRuntime } from "../runtime/system.js";

/** The trace of a run and of everything that descends from it. */
export const traceIdOf = (rootRunId: string): string => rootRunId.replaceAll("-", "");

/** @param id of a run, or of a step execution */
export const spanIdOf = (id: string): string => sha256Hex(id).slice(0, 16);

interface RequestedIds {
  traceId: string | null;
  spanId: string | null;
}

const requestedIds: RequestedIds = { traceId: null, spanId: null };

/**
 * What `start` makes first gets these ids, if its provider has a {@link RunIdGenerator}.
 *
 * @param ids traceId: null for a span that has a parent, and its trace from there
 */
export function withIds<Made>(ids: Readonly<RequestedIds>, start: () => Made): Made {
  Object.assign(requestedIds, ids);
  try {
    return start();
  } finally {
    requestedIds.traceId = requestedIds.spanId = null;
  }
}

/**
 * An IdGenerator for the tracer provider: the spans of runs get the ids that all processes agree upon, all others random
 * ones, as ever.
 *
 * ```ts
 * new NodeTracerProvider({ idGenerator: new RunIdGenerator(), … });
 * ```
 */
export class RunIdGenerator {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime = systemRuntime) {
    this.#runtime = runtime;
  }

  generateTraceId(): string {
    return takeRequestedId("traceId") ?? randomId(this.#runtime, 16);
  }

  generateSpanId(): string {
    return takeRequestedId("spanId") ?? randomId(this.#runtime, 8);
  }
}

/** Each is given once: a span processor may start spans of its own meanwhile. */
function takeRequestedId(key: keyof RequestedIds): string | null {
  const id = requestedIds[key];
  requestedIds[key] = null;
  return id;
}

/** The specification forbids an id of zeros only. */
function randomId(runtime: Runtime, bytes: number): string {
  const id = randomHex(runtime, bytes);
  return /^0+$/.test(id) ? `01${id.slice(2)}` : id;
}
