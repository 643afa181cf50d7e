import type { RunHandle } from "../../client/run-handle.js";
import type { OnConflict, StartOptions } from "../../client/start/new-run.js";
import { RunCanceledError, RunFailedError, WorkflowNotFoundError } from "../../core/errors/errors.js";
import { durationArgument, durationOrDateArgument, heroArgument, integerArgument, jsonArgument } from "../arguments.js";
import { CliError, sentenceOf } from "../cli-error.js";
import { command } from "../command.js";
import { withPawl } from "../database.js";
import { jsonOf } from "../json.js";
import type { Output } from "../output.js";

export const start = command({
  name: "start",
  about: "Start a run of a workflow by its name",
  args: ["<workflow>", "[json]"],
  options: {
    key: { type: "string", value: "<key>", about: "Idempotency key: the same key starts it once" },
    "on-conflict": {
      type: "string",
      value: "<policy>",
      choices: ["attach", "fail", "queue", "cancelOther", "replace"],
      about: "What to do if another run has the key or the hero",
    },
    hero: { type: "string", value: "<type:id>", about: "The hero: what the run is about" },
    delay: { type: "string", value: "<duration>", about: 'Start later: "2 days"' },
    "start-by": { type: "string", value: "<time>", about: 'Cancel it if it has not begun by then: "10m", or a date' },
    priority: { type: "string", value: "<n>", about: "Higher goes first" },
    tag: { type: "string", multiple: true, value: "<tag>", about: "A tag; may be given several times" },
    debounce: { type: "string", value: "<key>", about: "Merge it with other starts of this key; needs --quiet" },
    quiet: {
      type: "string",
      value: "<duration>",
      about: "With --debounce: due when there was no further start for so long",
    },
    max: {
      type: "string",
      value: "<duration>",
      about: "With --debounce: due at the latest so long after the first start",
    },
    keep: {
      type: "string",
      value: "<which>",
      choices: ["last", "first", "all"],
      about: "With --debounce: the input that the run gets",
    },
    wait: { type: "boolean", about: "Wait for the end, and print the result" },
    timeout: { type: "string", value: "<duration>", about: "With --wait: stop waiting after this time" },
  },
  example: `pawl start order '{"sku": "A-1"}' --key cart-77 --wait`,

  run: async (call) => {
    const { options, out } = call;
    const [workflow, json] = call.args as [string, string | undefined];
    const input = jsonArgument("input", json);
    const triggerOptions = parseStartOptions(options);
    const timeoutMs = durationArgument("timeout", options.timeout);
    await withPawl(call, async (pawl) => {
      const run = await pawl.workflow(workflow).trigger(input, triggerOptions).catch(rethrowForCli);
      if (options.wait === true) return waitForResult(run, timeoutMs, out);
      const { created, merged } = run;
      out.print({ ...(await run.get()), created, merged }, () => startedText(run, `${workflow}`));
    });
  },
});

/** Tells the user whether the run was started now, or earlier with the same key. */
function startedText({ id, created, merged, replaced, startsAfter }: RunHandle, workflow: string | null): string {
  const workflowText = workflow === null ? "" : ` ${workflow}`;
  if (merged) return `Added to a run that has not begun:${workflowText} ${id}`;
  if (replaced === true) return `Replaced what was started before, with this key:${workflowText} ${id}`;
  if (startsAfter !== null) return `Started${workflowText}: ${id}, which begins after the end of ${startsAfter}`;
  return created === false ? `Started before, with this key:${workflowText} ${id}` : `Started${workflowText}: ${id}`;
}

/** Prints only the output of the run in text mode, and the whole run with --json. */
async function waitForResult(run: RunHandle, timeoutMs: number | undefined, out: Output): Promise<void> {
  if (!out.json) out.note(startedText(run, null));
  try {
    const output = await run.result(timeoutMs === undefined ? {} : { timeout: timeoutMs });
    out.print(await run.get(), () => jsonOf(output, 2));
  } catch (cause) {
    const end = describeEnd(cause);
    if (end === null) throw cause;
    if (out.json) out.print(await run.get(), () => []);
    throw new CliError(`Run ${run.id} ${end}`, { cause });
  }
}

function describeEnd(error: unknown): string | null {
  if (error instanceof RunCanceledError) return `was canceled${error.reason === undefined ? "." : `: ${error.reason}`}`;
  return error instanceof RunFailedError ? `failed: ${sentenceOf(error.cause)}` : null;
}

interface StartFlags {
  readonly key?: string;
  readonly hero?: string;
  readonly delay?: string;
  readonly "on-conflict"?: string;
  readonly "start-by"?: string;
  readonly priority?: string;
  readonly tag?: readonly string[];
  readonly debounce?: string;
  readonly quiet?: string;
  readonly max?: string;
  readonly keep?: string;
}

/** The values are checked by `trigger`. */
function parseDebounce({ debounce: key, quiet, max, keep }: StartFlags): Pick<StartOptions, "debounce"> {
  const others = Object.entries({ quiet, max, keep }).filter(([, value]) => value !== undefined);
  if (key === undefined) {
    if (others.length > 0)
      throw new CliError(`--${others[0]?.[0]} says how starts are merged; it needs --debounce <key>.`);
    return {};
  }
  if (quiet === undefined) throw new CliError("--debounce needs --quiet, such as --quiet 5s.");
  const quietMs = durationArgument("quiet", quiet);
  const maxMs = durationArgument("max", max);
  const debounce = {
    key,
    quiet: quietMs,
    ...(maxMs === undefined ? {} : { max: maxMs }),
    ...(keep === undefined ? {} : { keep }),
  };
  return { debounce: debounce as NonNullable<StartOptions["debounce"]> };
}

function parseStartOptions(flags: StartFlags): StartOptions {
  const { key, hero, delay, priority, tag } = flags;
  const startBy = durationOrDateArgument("start-by", flags["start-by"]);
  const heroRef = heroArgument(hero);
  const delayMs = durationArgument("delay", delay);
  const priorityNumber = integerArgument("priority", priority);
  return {
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(heroRef === undefined ? {} : { hero: heroRef }),
    ...(delayMs === undefined ? {} : { delay: delayMs }),
    ...(startBy === undefined ? {} : { startBy }),
    ...(flags["on-conflict"] === undefined ? {} : { onConflict: flags["on-conflict"] as OnConflict }),
    ...(priorityNumber === undefined ? {} : { priority: priorityNumber }),
    ...(tag === undefined ? {} : { tags: tag }),
    ...parseDebounce(flags),
  };
}

/** Replaces a WorkflowNotFoundError, whose message tells the user to call a method, by an error that names a command. */
function rethrowForCli(error: unknown): never {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
  throw new CliError(
    `No worker has ever registered a workflow "${error.workflow}" in this database; run: pawl worker <file>`,
  );
}
