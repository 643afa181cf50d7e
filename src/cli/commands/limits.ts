import type { OverrideOptions } from "../../client/limits/limit-info.js";
import type { Pawl } from "../../connect.js";
import { didYouMean } from "../../core/naming/nearest-word.js";
import type { RateOptions } from "../../define/limit.js";
import { integerArgument } from "../arguments.js";
import { CliError } from "../cli-error.js";
import { type Call, command, type OptionSpecs } from "../command.js";
import { withPawl } from "../database.js";
import { drawLimit, drawLimits } from "../limit-view.js";
import { untilArgument } from "../schedule-times.js";
import { absoluteAndRelativeTime } from "../times.js";

const options = {
  names: { type: "boolean", about: "list: print only the names" },
  key: { type: "string", value: "<key>", about: "show: only the slots of this key" },
  limit: { type: "string", value: "<n>", about: "show: how many keys; default 100" },
  cursor: { type: "string", value: "<next>", about: "show: continue after the page that printed this cursor" },
  concurrency: { type: "string", value: "<n>", about: 'override: the slots of each key, or "any"' },
  rate: { type: "string", value: "<n/time>", about: 'override: how many begin in a time, such as 100/1m, or "any"' },
  burst: { type: "string", value: "<n>", about: "override: with --rate: how many may begin at once besides the first" },
  until: { type: "string", value: "<time>", about: 'override: when it ends: a time (UTC), or "2h" from now' },
  by: { type: "string", value: "<name>", about: "override: who does it" },
  reason: { type: "string", value: "<text>", about: "override: why" },
} as const satisfies OptionSpecs;

type LimitCall = Call<typeof options>;
type OptionName = keyof typeof options;

interface Action {
  readonly takes: readonly OptionName[];
  run(call: LimitCall, pawl: Pawl, name: string): Promise<void>;
}

const actions: Readonly<Record<string, Action>> = {
  list: { takes: ["names"], run: list },
  show: { takes: ["key", "limit", "cursor"], run: show },
  override: { takes: ["concurrency", "rate", "burst", "until", "by", "reason"], run: override },
  clear: { takes: [], run: clear },
};
const actionNames = Object.keys(actions);

export const limits = command({
  name: "limits",
  about: "List and show limits: what is in use and what waits; override them",
  args: ["[action]", "[limit]"],
  options,
  example: 'pawl limits override openai --concurrency 5 --until 2h --reason "their incident"',
  actions: actionNames,
  printNames: "limits list --names",

  run: async (call) => {
    const [word = "list", name] = call.args;
    const action = Object.hasOwn(actions, word) ? actions[word] : undefined;
    if (action === undefined)
      throw new CliError(
        `pawl limits has no "${word}"${didYouMean(word, actionNames) || `; it has ${actionNames.join(", ")}.`}`,
      );
    checkOptions(call, word, action);
    if (word === "list" && name !== undefined)
      throw new CliError(`"${name}" is one argument too many; show a limit with: pawl limits show ${name}`);
    if (word !== "list" && name === undefined) throw new CliError(`Which limit? Name it: pawl limits ${word} <limit>`);
    await withPawl(call, (pawl) => action.run(call, pawl, name ?? ""));
  },
});

function checkOptions({ options: given }: LimitCall, word: string, { takes }: Action): void {
  const wrong = (Object.keys(options) as OptionName[]).find(
    (name) => given[name] !== undefined && !takes.includes(name),
  );
  if (wrong === undefined) return;
  const users = actionNames.filter((name) => actions[name]?.takes.includes(wrong));
  throw new CliError(`--${wrong} goes with ${users.join(" and ")}, not with ${word}.`);
}

async function notFound(pawl: Pawl, name: string): Promise<CliError> {
  const known = (await pawl.limits.list()).map((limit) => limit.name);
  const hint =
    didYouMean(name, known) ||
    (known.length === 0 ? ": no worker has registered any limit." : ". `pawl limits` lists them.");
  return new CliError(`There is no limit "${name}"${hint}`);
}

async function list({ options: { names }, out }: LimitCall, pawl: Pawl): Promise<void> {
  const found = await pawl.limits.list();
  if (names === true) {
    const list = found.map(({ name }) => name);
    return out.print(list, () => list);
  }
  out.print(found, () => (found.length === 0 ? "No limits: no worker has registered any." : drawLimits(found, out)));
}

async function show({ options: { key, limit, cursor }, out }: LimitCall, pawl: Pawl, name: string): Promise<void> {
  const size = integerArgument("limit", limit);
  const details = await pawl.limits.get(name, {
    ...(key === undefined ? {} : { key }),
    ...(cursor === undefined ? {} : { cursor }),
    ...(size === undefined ? {} : { limit: size }),
  });
  if (details === null) throw await notFound(pawl, name);
  out.print(details, () => {
    const more = details.next === null ? [] : [out.paint("dim", `There are more keys: --cursor ${details.next}`)];
    return [...drawLimit(details, out), ...more];
  });
}

async function override(call: LimitCall, pawl: Pawl, name: string): Promise<void> {
  const { out, options: given } = call;
  const values = overrideOf(call);
  if (values.concurrency === undefined && values.rate === undefined)
    throw new CliError(`The override changes nothing; give it --concurrency 5, --rate 100/1m, or both.`);
  if ((await pawl.limits.get(name, { limit: 1 })) === null) throw await notFound(pawl, name);
  const until = untilArgument(given.until, "UTC");
  const limit = await pawl.limits.override(name, { ...values, ...(until === undefined ? {} : { until }) });
  const end = limit.override?.until ?? null;
  const endText = end === null ? "until it is cleared" : `until ${absoluteAndRelativeTime(end, out.now())}`;
  out.print(limit, () => [
    `The override of limit "${name}" is in force ${endText}.`,
    ...(end === null ? [`To end it: pawl limits clear ${name}`] : []),
  ]);
}

function overrideOf({ options: { concurrency, rate, burst, by, reason } }: LimitCall): OverrideOptions {
  if (burst !== undefined && rate === undefined)
    throw new CliError("--burst goes with --rate, such as --rate 100/1m --burst 20.");
  const slots = concurrency === "any" ? null : integerArgument("concurrency", concurrency);
  return {
    ...(slots === undefined ? {} : { concurrency: slots }),
    ...(rate === undefined ? {} : { rate: rateOf(rate, integerArgument("burst", burst)) }),
    ...(by === undefined ? {} : { by }),
    ...(reason === undefined ? {} : { reason }),
  };
}

function rateOf(text: string, burst: number | undefined): RateOptions | null {
  if (text === "any") return null;
  const [, count, per] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  if (count === undefined || per === undefined)
    throw new CliError(`--rate takes how many in which time, such as 100/1m, or "any", not "${text}".`);
  return {
    limit: Number(count),
    per: (/^\d/.test(per) ? per : `1${per}`) as RateOptions["per"],
    ...(burst === undefined ? {} : { burst }),
  };
}

async function clear({ out }: LimitCall, pawl: Pawl, name: string): Promise<void> {
  const before = await pawl.limits.get(name, { limit: 1 });
  if (before === null) throw await notFound(pawl, name);
  const limit = await pawl.limits.clearOverride(name);
  out.print(limit, () =>
    before.override === null
      ? `Limit "${name}" had no override.`
      : `The override of limit "${name}" is cleared; the values of the code are in force.`,
  );
}
