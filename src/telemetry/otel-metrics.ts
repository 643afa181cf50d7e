/** Exports metrics of runs to OpenTelemetry. */
import { type BatchObservableResult, type MeterProvider, metrics } from "@opentelemetry/api";
import { checkOptions } from "../core/naming/check-options.js";
import { ErrorGuard, type TelemetryOptions, type TelemetrySubscription } from "./listeners.js";
import {
  limitGauges,
  type MetricsSource,
  queueGauges,
  readLimits,
  readScheduleLags,
  scheduleLag,
} from "./queue-gauges.js";
import { durationBucketsSeconds, recordMetrics } from "./run-metrics.js";

/** Options of `measureRuns`. */
export interface MeasureOptions extends TelemetryOptions {
  /** The provider of the meter; default: the global one. */
  readonly meterProvider?: MeterProvider;
}

const measureOptions = new Set<string>(["meterProvider", "logger"] satisfies (keyof MeasureOptions)[]);

/**
 * Counts and times the runs and steps of this process by workflow, and observes the queues of the whole database, until
 * you stop it.
 *
 * @example
 * ```ts
 * const measuring = measureRuns(pawl);
 * // when the process ends:
 * await measuring.stop();
 * await pawl.close();
 * ```
 */
export function measureRuns(pawl: MetricsSource, options: MeasureOptions = {}): TelemetrySubscription {
  checkOptions("measureRuns()", options, measureOptions);
  const guard = new ErrorGuard("Measuring", options);
  const meter = (options.meterProvider ?? metrics).getMeter("pawl");
  const seconds = { unit: "s", advice: { explicitBucketBoundaries: [...durationBucketsSeconds] } };
  const started = meter.createCounter("pawl.runs.started", { description: "Runs whose code started." });
  const ended = meter.createCounter("pawl.runs.ended", { description: "Runs that ended, by status." });
  const paused = meter.createCounter("pawl.runs.paused", { description: "Pauses of runs." });
  const runs = meter.createHistogram("pawl.run.duration", {
    description: "From the start of the code to the end.",
    ...seconds,
  });
  const steps = meter.createHistogram("pawl.step.duration", { description: "Step executions.", ...seconds });
  const failures = meter.createCounter("pawl.step.failures", { description: "Step executions that threw." });
  const occurrences = meter.createCounter("pawl.schedule.occurrences", {
    description: "What became of the occurrences of schedules, as this process decided it.",
  });
  const lag = meter.createObservableGauge("pawl.schedule.lag", { description: scheduleLag.help, unit: "s" });
  const gauges = queueGauges.map(({ name, help, unit, read }) => {
    const options = { description: help, ...(unit === undefined ? {} : { unit }) };
    return { gauge: meter.createObservableGauge(`pawl.queue.${name}`, options), read };
  });
  const ofLimits = limitGauges.map(({ name, help, read }) => ({
    gauge: meter.createObservableGauge(`pawl.limit.${name}`, { description: help }),
    read,
  }));
  const observableGauges = [...gauges, ...ofLimits].map(({ gauge }) => gauge).concat(lag);
  const observe = async (result: BatchObservableResult) => {
    try {
      for (const queue of await pawl.queues())
        for (const { gauge, read } of gauges) result.observe(gauge, read(queue), { queue: queue.name });
      for (const { schedule, seconds } of await readScheduleLags(pawl))
        result.observe(lag, seconds, schedule === null ? {} : { schedule });
      for (const limit of await readLimits(pawl)) {
        for (const { gauge, read } of ofLimits) {
          const figure = read(limit);
          if (figure !== null) result.observe(gauge, figure, { limit: limit.name });
        }
      }
    } catch (error) {
      guard.warnOnce(error);
    }
  };
  meter.addBatchObservableCallback(observe, observableGauges);

  const subscription = recordMetrics(
    pawl,
    {
      runStarted: (workflow) => started.add(1, { workflow }),
      runEnded: (workflow, status) => ended.add(1, { workflow, status }),
      runTook: (workflow, status, took) => runs.record(took, { workflow, status }),
      runPaused: (workflow) => paused.add(1, { workflow }),
      stepTook: (workflow, step, took) => steps.record(took, { workflow, step }),
      stepFailed: (workflow, step, outcome) => failures.add(1, { workflow, step, outcome }),
      occurrenceDecided: (schedule, outcome, count) => occurrences.add(count, { schedule, outcome }),
    },
    guard,
  );
  return {
    stop: () => {
      meter.removeBatchObservableCallback(observe, observableGauges);
      return subscription.stop();
    },
  };
}
