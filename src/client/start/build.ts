/** Makes a new run from a graph that is built at run time; the frozen graph becomes the input of the run. */
import { encode } from "../../core/encoding/encode.js";
import { InvalidInputError } from "../../core/errors/errors.js";
import type { DagOptions } from "../../core/graph/frozen-dag.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { checkName } from "../../core/naming/names.js";
import { frozenDagVersion, graphRoute } from "../../core/naming/route.js";
import { GraphBuilder } from "../../define/dynamic/builder.js";
import { defaultHeroPolicy } from "../../define/hero.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { NewRun } from "../../store/contract/store.js";
import type { IdSource } from "./new-id.js";
import { newRunFactory, type StartOptions, startOptions } from "./new-run.js";

/** Options of `pawl.build`. */
export interface BuildOptions extends StartOptions, DagOptions {
  /** false stores the run without starting it; `run.start()` starts it later. Default true. */
  readonly start?: boolean;
}

const graphOnlyOptions = ["start", "concurrency", "onNodeFailure"] satisfies (keyof BuildOptions)[];
const buildOptions = new Set([...startOptions, ...graphOnlyOptions]);

/** Large enough for 100,000 nodes, and small enough for the default packet size of the databases. */
const graphLimitBytes = 15 * 1024 * 1024;

export interface BuildServices {
  readonly runtime: Runtime;
  readonly ids: IdSource;
}

/** @param now the current time by the clock of the store */
export async function createGraphRun(
  name: string,
  build: (g: GraphBuilder) => unknown,
  options: BuildOptions,
  now: number,
  { runtime, ids }: BuildServices,
): Promise<NewRun> {
  if (typeof build !== "function")
    throw new InvalidInputError(`build("${String(name)}", …) takes a function that adds nodes.`);
  checkOptions(`build("${String(name)}")`, options, buildOptions);
  const { start = true, concurrency, onNodeFailure, ...rest } = options;
  const builder = new GraphBuilder(checkName("workflow", name), runtime);
  await build(builder);
  const settings = {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(onNodeFailure === undefined ? {} : { onNodeFailure }),
  };
  const input = encode(builder.freezeDag(new Date(now), settings), {
    label: `graph "${name}"`,
    limitBytes: graphLimitBytes,
  });
  const origin = {
    name,
    version: frozenDagVersion,
    queue: null,
    priority: 0,
    startByMs: null,
    tags: [],
    hero: defaultHeroPolicy,
  };
  const run = newRunFactory(origin, rest, ids)(null);
  return { ...run, input, route: graphRoute, due: start ? run.due : { kind: "held" } };
}
