/** `pawl/prometheus`: what happened to runs since the process began, for Prometheus to fetch. Needs nothing installed. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { checkOptions } from "../core/naming/check-options.js";
import { Counter, contentType, Histogram, renderGauge } from "./exposition.js";
import { ErrorGuard, type TelemetryOptions, type TelemetrySubscription } from "./listeners.js";
import { type MetricsSource, queueGauges } from "./queue-gauges.js";
import { durationBucketsSeconds, recordMetrics } from "./run-metrics.js";

export type { TelemetryOptions, TelemetrySubscription } from "./listeners.js";
export type { MetricsSource } from "./queue-gauges.js";
export type { RunSource } from "./run-cache.js";

/** Renders the figures, for a handler of your own server; `stop` ends the counting. */
export interface PrometheusExporter extends TelemetrySubscription {
  (): Promise<string>;
}

const prometheusOptions = new Set<string>(["logger"] satisfies (keyof TelemetryOptions)[]);

/**
 * Counts from now on.
 *
 * ```ts
 * const figures = prometheus(pawl);
 * app.get("/metrics", async (_, reply) => reply.type("text/plain").send(await figures()));
 * ```
 */
export function prometheus(pawl: MetricsSource, options: TelemetryOptions = {}): PrometheusExporter {
  checkOptions("prometheus()", options, prometheusOptions);
  const guard = new ErrorGuard("Measuring", options);
  const started = new Counter("pawl_runs_started_total", "Runs whose code began.");
  const ended = new Counter("pawl_runs_ended_total", "Runs that ended, by status.");
  const paused = new Counter("pawl_runs_paused_total", "Pauses of runs.");
  const runs = new Histogram("pawl_run_duration_seconds", "From first code to end.", durationBucketsSeconds);
  const steps = new Histogram("pawl_step_duration_seconds", "Step executions.", durationBucketsSeconds);
  const failures = new Counter("pawl_step_failures_total", "Step executions that threw.");
  const { stop } = recordMetrics(
    pawl,
    {
      runStarted: (workflow) => started.add({ workflow }),
      runEnded: (workflow, status) => ended.add({ workflow, status }),
      runTook: (workflow, status, seconds) => runs.record({ workflow, status }, seconds),
      runPaused: (workflow) => paused.add({ workflow }),
      stepTook: (workflow, step, seconds) => steps.record({ workflow, step }, seconds),
      stepFailed: (workflow, step, outcome) => failures.add({ workflow, step, outcome }),
    },
    guard,
  );

  const renderQueueGauges = async (): Promise<string[]> => {
    try {
      const queues = await pawl.queues();
      return queueGauges.map(({ name, help, unit, read }) =>
        renderGauge(
          `pawl_queue_${name}${unit === "s" ? "_seconds" : ""}`,
          help,
          queues.map((queue) => [{ queue: queue.name }, read(queue)]),
        ),
      );
    } catch (error) {
      // The database is away: what was counted here is still worth fetching.
      guard.warnOnce(error);
      return [];
    }
  };
  const render = async () => {
    const current = await renderQueueGauges();
    const counted = [started, ended, paused, runs, steps, failures].map((one) => one.render());
    return `${[...counted, ...current].join("\n")}\n`;
  };
  return Object.assign(render, { stop });
}

export interface ServeOptions extends TelemetryOptions {
  /** 0: any that is free. */
  readonly port: number;
  /** Default: all interfaces, as Prometheus is seldom on the same machine. */
  readonly host?: string;
}

const serveOptions = new Set<string>(["port", "host", "logger"] satisfies (keyof ServeOptions)[]);

/**
 * Serves the figures at `/metrics`. The server does not keep its process alive; closing it ends the counting.
 *
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
      return void response.writeHead(404).end("The figures are at /metrics.\n");
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
