/** What a start sends, and the same as a command and as TypeScript. */

/** What is typed into the fields beside the input. */
export interface StartOptions {
  readonly key: string;
  readonly delay: string;
  readonly tags: string;
  readonly priority: string;
  readonly heroType: string;
  readonly heroId: string;
  readonly reason: string;
}

export const noOptions: StartOptions = {
  ...{ key: "", delay: "", tags: "", priority: "", heroType: "", heroId: "", reason: "" },
};

export interface StartBody {
  /** Missing: the run gets no input. */
  readonly input?: unknown;
  readonly idempotencyKey?: string;
  readonly delay?: string;
  readonly tags?: readonly string[];
  readonly priority?: number;
  readonly hero?: { readonly type: string; readonly id: string };
  readonly reason?: string;
}

const tagsOf = (text: string): string[] =>
  text
    .split(",")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");

/** What is wrong with the options, by field. */
export function optionErrors({
  priority,
  heroType,
  heroId,
}: StartOptions): Partial<Record<keyof StartOptions, string>> {
  return {
    ...(priority.trim() === "" || /^[+-]?\d{1,10}$/.test(priority.trim())
      ? {}
      : { priority: "The priority is a whole number." }),
    ...(heroType.trim() !== "" && heroId.trim() === "" ? { heroId: "A hero has a type and an id." } : {}),
    ...(heroId.trim() !== "" && heroType.trim() === "" ? { heroType: "A hero has a type and an id." } : {}),
  };
}

/** @param input undefined: the run gets no input */
export function startBody(input: unknown, options: StartOptions): StartBody {
  const { key, delay, priority, heroType, heroId, reason } = options;
  const tags = tagsOf(options.tags);
  return {
    ...(input === undefined ? {} : { input }),
    ...(key.trim() === "" ? {} : { idempotencyKey: key.trim() }),
    ...(delay.trim() === "" ? {} : { delay: delay.trim() }),
    ...(tags.length === 0 ? {} : { tags }),
    ...(priority.trim() === "" ? {} : { priority: Number(priority) }),
    ...(heroType.trim() === "" ? {} : { hero: { type: heroType.trim(), id: heroId.trim() } }),
    ...(reason.trim() === "" ? {} : { reason: reason.trim() }),
  };
}

const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** The command line takes no reason, and reads its input as plain JSON. */
export function toCommand(workflow: string, body: StartBody): string {
  const { input, idempotencyKey, delay, tags = [], priority, hero } = body;
  const words = ["pawl", "start", shellWord(workflow)];
  if (input !== undefined) words.push(shellWord(JSON.stringify(input)));
  if (idempotencyKey !== undefined) words.push("--key", shellWord(idempotencyKey));
  if (hero !== undefined) words.push("--hero", shellWord(`${hero.type}:${hero.id}`));
  if (delay !== undefined) words.push("--delay", shellWord(delay));
  if (priority !== undefined) words.push("--priority", String(priority));
  for (const tag of tags) words.push("--tag", shellWord(tag));
  return words.join(" ");
}

export function toTypeScript(workflow: string, body: StartBody): string {
  const { input, ...options } = body;
  const given = Object.keys(options).length > 0;
  const args = [
    ...(input === undefined ? (given ? ["undefined"] : []) : [literal(input)]),
    ...(given ? [literal(options)] : []),
  ];
  return `const run = await pawl.workflow(${JSON.stringify(workflow)}).trigger(${args.join(", ")});`;
}

/** A value as an expression; values that are tagged as in the log become what they stand for. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const { $pawl: tag, v } = value as { readonly $pawl?: unknown; readonly v?: unknown };
  if (tag === "undefined") return "undefined";
  if (tag === "Date") return `new Date(${JSON.stringify(v)})`;
  if (tag === "BigInt" || tag === "bigint") return `${String(v)}n`;
  const entries = Object.entries(value).map(
    ([name, one]) => `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)}: ${literal(one)}`,
  );
  return entries.length === 0 ? "{}" : `{ ${entries.join(", ")} }`;
}
