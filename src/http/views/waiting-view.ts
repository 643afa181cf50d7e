/** What a parked run waits for, in JSON. It names steps and signals, and has no payloads. */
import { described, type JsonSchema, named } from "../schema.js";

const kinds = ["sleep", "signal", "step", "retry", "child", "map", "jobs", "reattempt"];

const json: JsonSchema = {
  type: "object",
  description: "What a run waits for. The fields beside `kind` depend on the kind.",
  properties: {
    kind: { type: "string", enum: kinds },
    name: { type: "string" },
    names: { type: "array", items: { type: "string" } },
    step: { type: "string" },
    attempt: { type: "integer" },
    runId: { type: "string" },
    workflow: { type: "string" },
    settled: { type: "integer" },
    count: { type: "integer" },
    open: { type: "integer" },
    jobs: { type: "array", items: { type: "string" } },
  },
  required: ["kind"],
  additionalProperties: false,
};

export const waitingSchema = named("Waiting", described(json));
