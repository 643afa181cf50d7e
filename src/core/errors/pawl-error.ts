/** What all errors of Pawl have in common. */

/** Every error Pawl throws extends this, so `catch (e) { if (e instanceof PawlError) … e.code … }` catches them all. */
export abstract class PawlError extends Error {
  /** Never changes between versions; the message may. */
  abstract readonly code: string;

  /** Name, message, code, its further fields, and the cause: what `JSON.stringify` would drop of an error. Not the stack. */
  toJSON(): Record<string, unknown> {
    return errorToJson(this);
  }
}

/** Gives classes the names that their errors show. Each file of errors does so with its own. */
export function nameErrors(classes: Readonly<Record<string, { readonly prototype: PawlError }>>): void {
  // On the prototypes, where V8 looks for a stack's first line, and as text, so that a minifier leaves them alone.
  for (const [name, { prototype }] of Object.entries(classes))
    Object.defineProperty(prototype, "name", { value: name, writable: true, configurable: true });
}

nameErrors({ PawlError });

/** Only the cause: an options object passed on whole would set `cause: undefined` from a key that is merely present. */
export function causeOf(options: ErrorOptions): ErrorOptions {
  return options.cause === undefined ? {} : { cause: options.cause };
}

/** Causes below this are left out: an error may be its own cause. */
const CAUSES_SHOWN = 5;

/** An error as JSON shows it. */
export function errorToJson(error: Error, levels = CAUSES_SHOWN): Record<string, unknown> {
  const inner = (one: unknown) => (one instanceof Error ? errorToJson(one, levels - 1) : one);
  const { name, message, cause, errors } = error as Error & { readonly errors?: unknown };
  const { cause: _cause, errors: _errors, ...fields } = error as Partial<AggregateError>;
  return {
    ...{ name, message },
    ...(fields as object),
    ...(Array.isArray(errors) && levels > 0 ? { errors: errors.map(inner) } : {}),
    ...(cause === undefined || levels === 0 ? {} : { cause: inner(cause) }),
  };
}
