// A logger for processes in which workers die on purpose, or runs wait for a worker on purpose: warnings would be
// noise.

const nothing = () => {};

export const quiet = { debug: nothing, info: nothing, warn: nothing, error: (...args) => console.error(...args) };
