/**
 * Promises that are handed to user code. Code may call something, do other things first, and await it only then, or
 * never; Node ends the process when a promise rejects before anything listens to it. A guarded promise still rejects for
 * the code that awaits it, but ends nothing when no code does.
 */
const ignore = (): void => {};

export function guardPromise<Promised extends Promise<unknown>>(promise: Promised): Promised {
  promise.catch(ignore);
  return promise;
}

type Method = (...args: unknown[]) => unknown;

/** Makes these methods of the class guard the promises that they return. */
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

const maxValues = 100_000;

/** Guards the promises within a value that cannot be stored because of them. Getters are not asked: each makes its own. */
export function guardPromisesWithin(value: unknown): void {
  const queue: unknown[] = [value];
  const seen = new Set<unknown>();
  for (let index = 0; index < queue.length && index < maxValues; index += 1) {
    const next = queue[index];
    if (typeof next !== "object" || next === null || ArrayBuffer.isView(next) || seen.has(next)) continue;
    seen.add(next);
    try {
      if (next instanceof Promise) guardPromise(next);
      else if (Array.isArray(next)) queue.push(...next.slice(0, maxValues));
      else for (const { value: inner } of Object.values(Object.getOwnPropertyDescriptors(next))) queue.push(inner);
    } catch {
      // A proxy of the user's that does not want to be looked at.
    }
  }
}
