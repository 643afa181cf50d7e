/** `pawl/otel`: OpenTelemetry, for those who have it. What is told of runs becomes spans and figures. */
export type { RunSource } from "./known-runs.js";
export type { Listening, ListeningOptions } from "./listen.js";
export { type MeasureOptions, measureRuns } from "./otel-metrics.js";
export { linkToRun, type Traceable, type TraceOptions, traceRuns } from "./otel-traces.js";
export type { Measurable } from "./queue-gauges.js";
export { RunIdGenerator } from "./span-ids.js";
