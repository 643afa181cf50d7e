/**
 * Guards promises that Pawl returns to user code. User code may await a promise late or never, and Node ends the process
 * when a promise rejects without a handler. A guarded promise has an empty handler from the start, and still rejects for
 * code that awaits it.
 */
const ignore = (): void => {};

export function guardPromise<Promised extends Promise<unknown>>(promise: Promised): Promised {
  promise.catch(ignore);
  return promise;
}

type Method = (...args: unknown[]) => unknown;

/** Replaces these methods of the class so that the promises they return are guarded. */
export function guardMethods<Type extends { readonly prototype: object }>(
  type: Type,
  names: readonly (keyof Type["prototype"] & string)[],
): void {
  for (const name of names) {
    const method = Reflect.get(type.prototype, name) as Method;
    const value = function (this: unknown, ...args: unknown[]): unknown {
      const result = method.apply(this, args);
      return result instanceof Promise ? guardPromise(result) : result;
    };
    Object.defineProperty(type.prototype, name, { value, writable: true, configurable: true });
  }
}

/** `guardPromisesWithin` inspects at most this many values. */
const maxValues = 100_000;

/**
 * Guards the promises inside a value that is rejected because it contains promises. Getters are not called, because each
 * call could create another promise.
 */
export function guardPromisesWithin(value: unknown): void {
  const queue: unknown[] = [value];
  const seen = new Set<unknown>();
  for (let index = 0; index < queue.length && index < maxValues; index += 1) {
    const current = queue[index];
    if (typeof current !== "object" || current === null || ArrayBuffer.isView(current) || seen.has(current)) continue;
    seen.add(current);
    try {
      if (current instanceof Promise) guardPromise(current);
      else if (Array.isArray(current)) queue.push(...current.slice(0, maxValues));
      else for (const { value: inner } of Object.values(Object.getOwnPropertyDescriptors(current))) queue.push(inner);
    } catch {
      // A proxy of the user's code may throw when it is inspected.
    }
  }
}
