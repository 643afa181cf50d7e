/**
 * Loads the user's files: workflows and the configuration, in JavaScript or TypeScript.
 *
 * Hooks (loader-hooks.ts) make TypeScript loadable and resolve "pawl" to this copy of the library: definitions made by
 * another copy would not be recognised.
 */
import { existsSync } from "node:fs";
import module from "node:module";
import { relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { MessageChannel } from "node:worker_threads";
import type { WorkflowDefinition } from "../define/definition.js";
import { isJob, type JobDefinition } from "../define/dynamic/job.js";
import { discoverWorkflows } from "../define/resolve.js";
import { discoverSchedules, type ScheduleDefinition } from "../define/schedule/schedule.js";
import { CliError, sentenceOf } from "./cli-error.js";
import * as hooks from "./loader-hooks.js";
import { syntaxErrorIn } from "./syntax-error.js";

type RegisterHooks = (hooks: object) => unknown;

/** `module.register` is deprecated from this version on; its replacement breaks `require("pawl")` in many earlier ones. */
const firstNodeWithSyncHooks = 26;

let areHooksRegistered = false;
let onLoad: ((path: string) => void) | null = null;

/** Reports each user file that is loaded. Must be called before the first file is loaded. */
export function watchLoadedFiles(listener: (path: string) => void): void {
  onLoad = listener;
}

function registerLoaderHooks(): void {
  if (areHooksRegistered) return;
  areHooksRegistered = true;
  // Transpiled code has other line numbers than its source; with source maps, errors name the lines of the source.
  if (hooks.needsTranspiler) process.setSourceMapsEnabled(true);
  if (Number.parseInt(process.versions.node, 10) < firstNodeWithSyncHooks)
    return void module.register("./loader-hooks.js", import.meta.url, createHookPort(onLoad));
  if (onLoad !== null) hooks.setLoadListener(onLoad);
  const { registerHooks } = module as unknown as { readonly registerHooks: RegisterHooks };
  registerHooks({ resolve: hooks.resolve, load: hooks.load });
}

/** The hooks run in a separate thread and report loaded files through a port, which does not keep the process alive. */
function createHookPort(listener: ((path: string) => void) | null) {
  if (listener === null) return {};
  const { port1, port2 } = new MessageChannel();
  port1.on("message", listener);
  port1.unref();
  return { data: { port: port2 }, transferList: [port2] };
}

export async function loadModule(file: string): Promise<object> {
  const path = resolve(file);
  const displayPath = relative(process.cwd(), path) || file;
  if (!existsSync(path)) throw new CliError(`There is no file ${displayPath}.`);
  registerLoaderHooks();
  try {
    return (await import(pathToFileURL(path).href)) as object;
  } catch (cause) {
    throw new CliError(`${displayPath} cannot be loaded: ${syntaxErrorIn(cause, path) ?? sentenceOf(cause)}`, {
      cause,
    });
  }
}

export interface Definitions {
  readonly workflows: readonly WorkflowDefinition[];
  readonly jobs: readonly JobDefinition[];
  readonly schedules: readonly ScheduleDefinition[];
}

/** Returns the workflows, classes, graphs, jobs and schedules that these files export. */
export async function loadDefinitions(files: readonly string[]): Promise<Definitions> {
  const uniqueDefinitions = new Set<WorkflowDefinition>();
  const uniqueSchedules = new Set<ScheduleDefinition>();
  for (const file of files) {
    const loaded = await loadModule(file);
    const definitions = discoverIn(loaded, discoverWorkflows);
    const schedules = discoverIn(loaded, discoverSchedules);
    if (definitions.length + schedules.length === 0)
      throw new CliError(
        `${file} exports no workflow; export what workflow(…), graph(…), job(…) or schedule(…) returns, or a class that extends Workflow.`,
      );
    for (const definition of definitions) uniqueDefinitions.add(definition);
    for (const schedule of schedules) uniqueSchedules.add(schedule);
  }
  const all = [...uniqueDefinitions];
  return {
    workflows: all.filter((definition) => !isJob(definition)),
    jobs: all.filter(isJob),
    schedules: [...uniqueSchedules],
  };
}

/** Node puts the exports of a CommonJS file under `default` as well, so this function searches `default`, too. */
function discoverIn<T>(loaded: object, discover: (module: object) => readonly T[]): T[] {
  const { default: defaultExport, ...named } = loaded as { readonly default?: unknown };
  const commonJsExports = typeof defaultExport === "object" && defaultExport !== null ? defaultExport : {};
  return [...new Set([...discover({ defaultExport, ...named }), ...discover(commonJsExports)])];
}
