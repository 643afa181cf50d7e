/**
 * Writes the values of users into responses. This is the one place that they pass on their way out: here they are hidden
 * from those who may not see them, redacted, cut to a size, and written as tagged or as plain JSON.
 */
import { encode } from "../core/encoding/encode.js";
import { type Failure, toFailure } from "../core/encoding/error-record.js";
import { TAG } from "../core/encoding/tagged-json.js";

/** What a value is, for `redact`. */
export interface PayloadContext {
  /** The kind of value. "text" is a reason, a message of progress or an explanation; "graph" a graph with its arguments. */
  readonly kind: "input" | "output" | "error" | "signal" | "event" | "graph" | "tags" | "hero" | "text";
  /** The name of the workflow, if it is known. */
  readonly workflow?: string | undefined;
  /** The id of the run, if it is known. */
  readonly runId?: string | undefined;
  /** The type of the event, or the name of the step or schedule, that the value belongs to. */
  readonly name?: string | undefined;
  /** The user that will see the value, as `authorize` named it. */
  readonly user?: string | undefined;
}

/** Replaces a value before it leaves. What it returns is shown instead. */
export type Redact = (value: unknown, about: PayloadContext) => unknown;

export interface PayloadRules {
  readonly redact: Redact | null;
  readonly user: string | undefined;
  /** Whether the access allows to see payloads. */
  readonly canSee: boolean;
  /** Lossy plain JSON for people, instead of tagged JSON. */
  readonly isPlain: boolean;
  /** Values whose JSON is longer are left out; null: nothing is. */
  readonly maxBytes: number | null;
}

/** Stands for a value that the access does not allow to see. No value of a user can look like this. */
const hidden = { [TAG]: "hidden" };
const hiddenText = "[hidden]";

export class PayloadWriter {
  readonly #rules: PayloadRules;

  constructor(rules: PayloadRules) {
    this.#rules = rules;
  }

  /** Whether every value is shown as it is: then a search in values tells nothing that is not shown. */
  get showsAll(): boolean {
    return this.#rules.canSee && this.#rules.redact === null;
  }

  get canSee(): boolean {
    return this.#rules.canSee;
  }

  /** The value as JSON. */
  value(value: unknown, about: PayloadContext): unknown {
    if (!this.#rules.canSee) return hidden;
    const shown = this.#redact(value, about);
    const json = this.#rules.isPlain ? toPlainJson(shown) : toTaggedJson(shown);
    return this.#fits(json) ? json : { [TAG]: "large", bytes: byteLengthOf(json) };
  }

  /** An error: its class is always shown, and everything else is a payload. */
  error(error: Error | null, about: Omit<PayloadContext, "kind">): unknown {
    if (error === null) return null;
    const failure = toFailure(error);
    if (!this.#rules.canSee)
      return { name: failure.name, message: hiddenText, ...(failure.code === undefined ? {} : { code: failure.code }) };
    const shown = this.#redact(failure, { ...about, kind: "error" });
    const json = toTaggedJson(shown);
    if (this.#fits(json)) return json;
    const { name = "Error", message = "" } = (shown ?? {}) as Partial<Failure>;
    return {
      name: String(name),
      message: `${String(message).slice(0, 200)}…`,
      [TAG]: "large",
      bytes: byteLengthOf(json),
    };
  }

  /** A text that may quote payloads. */
  text(text: string | null, about: Omit<PayloadContext, "kind">): string | null {
    if (text === null) return null;
    if (!this.#rules.canSee) return hiddenText;
    const shown = this.#redact(text, { ...about, kind: "text" });
    return typeof shown === "string" ? shown : shown == null ? null : JSON.stringify(shown);
  }

  /** A list of texts that is visible to all, but may be redacted. */
  tags(tags: readonly string[], about: Omit<PayloadContext, "kind">): readonly string[] {
    const shown = this.#redact(tags, { ...about, kind: "tags" });
    return Array.isArray(shown) ? shown.map(String) : [];
  }

  hero(hero: { readonly type: string; readonly id: string } | null, about: Omit<PayloadContext, "kind">) {
    if (hero === null) return null;
    const shown = this.#redact(hero, { ...about, kind: "hero" }) as Partial<typeof hero> | null | undefined;
    return shown == null ? null : { type: String(shown.type ?? hero.type), id: String(shown.id ?? hiddenText) };
  }

  #redact(value: unknown, about: PayloadContext): unknown {
    const { redact, user } = this.#rules;
    return redact === null ? value : redact(value, { ...about, user });
  }

  #fits(json: unknown): boolean {
    const { maxBytes } = this.#rules;
    return maxBytes === null || byteLengthOf(json) <= maxBytes;
  }
}

const byteLengthOf = (json: unknown) => Buffer.byteLength(JSON.stringify(json) ?? "");

const toTaggedJson = (value: unknown): unknown =>
  JSON.parse(encode(value, { label: "a value for the HTTP API", limitBytes: Number.POSITIVE_INFINITY }));

const maxPlainDepth = 200;

/** What JSON cannot express is written as people would write it, and cannot be read back. */
export function toPlainJson(value: unknown, levels = maxPlainDepth): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || levels === 0) return null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof URL || value instanceof RegExp) return String(value);
  if (value instanceof Error) return toPlainJson(toFailure(value), levels - 1);
  if (value instanceof Set) return toPlainJson([...value], levels);
  if (value instanceof Map) return plainMap(value, levels);
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (ArrayBuffer.isView(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  if (Array.isArray(value)) return value.map((item) => toPlainJson(item, levels - 1));
  return plainObject(Object.entries(value), levels);
}

function plainMap(map: ReadonlyMap<unknown, unknown>, levels: number): unknown {
  const entries = [...map];
  return entries.every(([key]) => typeof key === "string")
    ? plainObject(entries as [string, unknown][], levels)
    : entries.map((entry) => entry.map((part) => toPlainJson(part, levels - 1)));
}

/** The result has no prototype, so that the key `__proto__` is a key like any other. */
function plainObject(entries: readonly (readonly [string, unknown])[], levels: number): unknown {
  const result: Record<string, unknown> = Object.create(null);
  for (const [key, item] of entries) if (item !== undefined) result[key] = toPlainJson(item, levels - 1);
  return result;
}
