/**
 * Ids of traces and spans that every process computes for itself: so the spans that different processes make of one run
 * fit together, and nothing has to be stored or sent along.
 */
import { randomBytes } from "node:crypto";
import { sha256Hex } from "../core/naming/ids.js";

/** The trace of a run and of everything that descends from it. */
export const traceIdOf = (rootRunId: string): string => rootRunId.replaceAll("-", "");

/** @param id of a run, or of a step execution */
export const spanIdOf = (id: string): string => sha256Hex(id).slice(0, 16);

interface Wanted {
  traceId: string | null;
  spanId: string | null;
}

const wanted: Wanted = { traceId: null, spanId: null };

/**
 * What `start` makes first gets these ids, if its provider has a {@link RunIdGenerator}.
 *
 * @param ids traceId: null for a span that has a parent, and its trace from there
 */
export function withIds<Made>(ids: Readonly<Wanted>, start: () => Made): Made {
  Object.assign(wanted, ids);
  try {
    return start();
  } finally {
    wanted.traceId = wanted.spanId = null;
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
  generateTraceId(): string {
    return take("traceId") ?? random(16);
  }

  generateSpanId(): string {
    return take("spanId") ?? random(8);
  }
}

/** Each is given once: a span processor may start spans of its own meanwhile. */
function take(which: keyof Wanted): string | null {
  const id = wanted[which];
  wanted[which] = null;
  return id;
}

/** The specification forbids an id of zeros only. */
function random(bytes: number): string {
  const id = randomBytes(bytes);
  if (id.every((byte) => byte === 0)) id[0] = 1;
  return id.toString("hex");
}
