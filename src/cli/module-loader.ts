/**
 * Loads files of the user: workflows and the configuration, in JavaScript or TypeScript.
 *
 * Hooks (loader-hooks.ts) see to it that TypeScript can be loaded, and that whatever is loaded gets this very copy of
 * Pawl when it imports "pawl": what another copy had made would not be recognised.
 */
import { existsSync } from "node:fs";
import module from "node:module";
import { relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { MessageChannel } from "node:worker_threads";
import type { WorkflowDefinition } from "../define/definition.js";
import { isJob, type JobDefinition } from "../define/dynamic/job.js";
import { discoverWorkflows } from "../define/resolve.js";
import { CliError, sentenceOf } from "./cli-error.js";
import * as hooks from "./loader-hooks.js";
import { syntaxErrorIn } from "./syntax-error.js";

type RegisterHooks = (hooks: object) => unknown;

/** `module.register` is deprecated from here on; what replaces it breaks `require("pawl")` in many Nodes before. */
const firstNodeWithSyncHooks = 26;

let areHooksRegistered = false;
let onLoad: ((path: string) => void) | null = null;

/** From now on each file of the user's that is loaded is told. Before the first is. */
export function watchLoadedFiles(listener: (path: string) => void): void {
  onLoad = listener;
}

function registerLoaderHooks(): void {
  if (areHooksRegistered) return;
  areHooksRegistered = true;
  // What is transpiled has other lines than its source; errors are to name those of the source.
  if (hooks.needsTranspiler) process.setSourceMapsEnabled(true);
  if (Number.parseInt(process.versions.node, 10) < firstNodeWithSyncHooks)
    return void module.register("./loader-hooks.js", import.meta.url, createHookPort(onLoad));
  if (onLoad !== null) hooks.setLoadListener(onLoad);
  const { registerHooks } = module as unknown as { readonly registerHooks: RegisterHooks };
  registerHooks({ resolve: hooks.resolve, load: hooks.load });
}

/** The hooks run in a thread of their own, and tell what they load through a port. It keeps no process alive. */
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
}

/** The workflows, classes, graphs and jobs that these files export. */
export async function loadDefinitions(files: readonly string[]): Promise<Definitions> {
  const uniqueDefinitions = new Set<WorkflowDefinition>();
  for (const file of files) {
    const definitions = definitionsIn(await loadModule(file));
    if (definitions.length === 0)
      throw new CliError(
        `${file} exports no workflow; export what workflow(…), graph(…) or job(…) returns, or a class that extends Workflow.`,
      );
    for (const one of definitions) uniqueDefinitions.add(one);
  }
  const all = [...uniqueDefinitions];
  return { workflows: all.filter((one) => !isJob(one)), jobs: all.filter(isJob) };
}

/** Of a CommonJS file, all that it exports is under `default` too. */
function definitionsIn(loaded: object): WorkflowDefinition[] {
  const { default: byDefault, ...named } = loaded as { readonly default?: unknown };
  const inner = typeof byDefault === "object" && byDefault !== null ? byDefault : {};
  return [...new Set([...discoverWorkflows({ byDefault, ...named }), ...discoverWorkflows(inner)])];
}
