/** What a function of the user may answer with: the value itself, or a promise of it. */
export type Awaitable<T> = T | Promise<T>;
