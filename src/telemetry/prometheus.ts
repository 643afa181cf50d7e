/** `pawl/prometheus`: metrics of the runs since the process started, for Prometheus to scrape. Needs no other package. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { checkOptions } from "../core/naming/check-options.js";
import { Counter, contentType, Histogram, type Labels, renderGauge } from "./exposition.js";
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

export type { TelemetryOptions, TelemetrySubscription } from "./listeners.js";
export type { MetricsSource } from "./queue-gauges.js";
export type { RunSource } from "./run-cache.js";

/** Renders the metrics for a handler of your own server; `stop` ends the counting. */
export interface PrometheusExporter extends TelemetrySubscription {
  /** The metrics in the text format of Prometheus. */
  (): Promise<string>;
}

const prometheusOptions = new Set<string>(["logger"] satisfies (keyof TelemetryOptions)[]);

/**
 * Counts and times the runs and steps of this process from now on, and observes the queues of the whole database. Call
 * the result to render the metrics.
 *
 * @example
 * ```ts
 * const metrics = prometheus(pawl);
 * app.get("/metrics", async (_, reply) => reply.type("text/plain").send(await metrics()));
 * ```
 */
export function prometheus(pawl: MetricsSource, options: TelemetryOptions = {}): PrometheusExporter {
  checkOptions("prometheus()", options, prometheusOptions);
  const guard = new ErrorGuard("Measuring", options);
  const started = new Counter("pawl_runs_started_total", "Runs whose code started.");
  const ended = new Counter("pawl_runs_ended_total", "Runs that ended, by status.");
  const paused = new Counter("pawl_runs_paused_total", "Pauses of runs.");
  const help = "From the start of the code to the end.";
  const runs = new Histogram("pawl_run_duration_seconds", help, durationBucketsSeconds);
  const steps = new Histogram("pawl_step_duration_seconds", "Step executions.", durationBucketsSeconds);
  const failures = new Counter("pawl_step_failures_total", "Step executions that threw.");
  const occurrences = new Counter(
    "pawl_schedule_occurrences_total",
    "What became of the occurrences of schedules, as this process decided it.",
  );
  const { stop } = recordMetrics(
    pawl,
    {
      runStarted: (workflow) => started.add({ workflow }),
      runEnded: (workflow, status) => ended.add({ workflow, status }),
      runTook: (workflow, status, seconds) => runs.record({ workflow, status }, seconds),
      runPaused: (workflow) => paused.add({ workflow }),
      stepTook: (workflow, step, seconds) => steps.record({ workflow, step }, seconds),
      stepFailed: (workflow, step, outcome) => failures.add({ workflow, step, outcome }),
      occurrenceDecided: (schedule, outcome, count) => occurrences.add({ schedule, outcome }, count),
    },
    guard,
  );

  const renderGauges = async (): Promise<string[]> => {
    try {
      const [queues, lags, limits] = await Promise.all([pawl.queues(), readScheduleLags(pawl), readLimits(pawl)]);
      const ofQueues = queueGauges.map(({ name, help, unit, read }) =>
        renderGauge(
          `pawl_queue_${name}${unit === "s" ? "_seconds" : ""}`,
          help,
          queues.map((queue) => [{ queue: queue.name }, read(queue)]),
        ),
      );
      const ofSchedules = lags.map(({ schedule, seconds }): readonly [Labels, number] => [
        schedule === null ? {} : { schedule },
        seconds,
      ]);
      const ofLimits = limitGauges.map(({ name, help, read }) =>
        renderGauge(
          `pawl_limit_${name}`,
          help,
          limits.flatMap((limit): (readonly [Labels, number])[] => {
            const figure = read(limit);
            return figure === null ? [] : [[{ limit: limit.name }, figure]];
          }),
        ),
      );
      const ofLags = renderGauge(`pawl_${scheduleLag.name}_seconds`, scheduleLag.help, ofSchedules);
      return [...ofQueues, ofLags, ...ofLimits];
    } catch (error) {
      // If the database cannot be read, the metrics that were counted in this process are still worth scraping.
      guard.warnOnce(error);
      return [];
    }
  };
  const render = async () => {
    const gauges = await renderGauges();
    const countedMetrics = [started, ended, paused, runs, steps, failures, occurrences].map((metric) =>
      metric.render(),
    );
    return `${[...countedMetrics, ...gauges].join("\n")}\n`;
  };
  return Object.assign(render, { stop });
}

/** Options of `servePrometheus`. */
export interface ServeOptions extends TelemetryOptions {
  /** The port to listen on; 0 means any free port. */
  readonly port: number;
  /** The address to listen on. Default: all interfaces, as Prometheus is rarely on the same machine. */
  readonly host?: string;
}

const serveOptions = new Set<string>(["port", "host", "logger"] satisfies (keyof ServeOptions)[]);

/**
 * Serves the metrics at `/metrics`. The server does not keep its process alive; closing it ends the counting.
 *
 * @example
 * ```ts
 * const server = await servePrometheus(pawl, { port: 9464 });
 * ```
 */
export async function servePrometheus(pawl: MetricsSource, options: ServeOptions): Promise<Server> {
  checkOptions("servePrometheus()", options, serveOptions);
  const { port, host, ...telemetryOptions } = options;
  const exporter = prometheus(pawl, telemetryOptions);
  const server = createServer(async (request, response) => {
    if (request.url?.split("?")[0] !== "/metrics")
      return void response.writeHead(404).end("The metrics are at /metrics.\n");
    if (request.method !== "GET" && request.method !== "HEAD") return void response.writeHead(405).end();
    const text = await exporter();
    response.writeHead(200, { "content-type": contentType }).end(text);
  });
  server.on("close", () => void exporter.stop());
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    await exporter.stop();
    throw error;
  }
  return server.unref();
}
