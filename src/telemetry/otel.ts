/** `pawl/otel`: spans and metrics of runs for OpenTelemetry. Needs the package `@opentelemetry/api`. */

export type { TelemetryOptions, TelemetrySubscription } from "./listeners.js";
export { type MeasureOptions, measureRuns } from "./otel-metrics.js";
export { linkToRun, type TraceOptions, type TraceSource, traceRuns } from "./otel-traces.js";
export type { MetricsSource } from "./queue-gauges.js";
export type { RunSource } from "./run-cache.js";
export { RunIdGenerator } from "./span-ids.js";
