// For processes in which workers die on purpose, or runs wait for their worker on purpose: nobody needs to be warned.

const nothing = () => {};

export const quiet = { debug: nothing, info: nothing, warn: nothing, error: (...args) => console.error(...args) };
