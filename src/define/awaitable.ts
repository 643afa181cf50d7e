/** The result of a user's function: the value itself, or a promise of it. */
export type Awaitable<T> = T | Promise<T>;
