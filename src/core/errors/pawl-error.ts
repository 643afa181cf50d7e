/** The base class of all errors of Pawl. */

/** The base class of every error that Pawl throws, so that `error instanceof PawlError` and `error.code` identify them. */
export abstract class PawlError extends Error {
  /** Identifies the kind of error. The code stays the same between versions; the message may change. */
  abstract readonly code: string;

  /** The error for `JSON.stringify`: name, message, code, the fields of its class and the cause, without the stack. */
  toJSON(): Record<string, unknown> {
    return errorToJson(this);
  }
}

/** Sets the `name` of these error classes. Each file that defines error classes calls this function for them. */
export function nameErrors(classes: Readonly<Record<string, { readonly prototype: PawlError }>>): void {
  // The name is set on the prototype, because V8 reads it there for the first line of a stack trace. The names are property
  // keys, which a minifier does not change, whereas it would change `constructor.name`.
  for (const [name, { prototype }] of Object.entries(classes))
    Object.defineProperty(prototype, "name", { value: name, writable: true, configurable: true });
}

nameErrors({ PawlError });

/** Returns the cause, or no option at all, because `super(message, { cause: undefined })` would set a `cause` property. */
export function causeOf(options: ErrorOptions): ErrorOptions {
  return options.cause === undefined ? {} : { cause: options.cause };
}

/** Causes that are nested more deeply than this are left out, because an error may be its own cause. */
const CAUSES_SHOWN = 5;

/** An error as plain data, for `JSON.stringify`. */
export function errorToJson(error: Error, levels = CAUSES_SHOWN): Record<string, unknown> {
  const toInnerJson = (inner: unknown) => (inner instanceof Error ? errorToJson(inner, levels - 1) : inner);
  const { name, message, cause, errors } = error as Error & { readonly errors?: unknown };
  const { cause: _cause, errors: _errors, ...fields } = error as Partial<AggregateError>;
  return {
    ...{ name, message },
    ...(fields as object),
    ...(Array.isArray(errors) && levels > 0 ? { errors: errors.map(toInnerJson) } : {}),
    ...(cause === undefined || levels === 0 ? {} : { cause: toInnerJson(cause) }),
  };
}
