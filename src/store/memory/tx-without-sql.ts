/** The `tx` of transactional steps on the memory store. It has no SQL, so using it throws an error that says so. */
import { InvalidInputError } from "../../core/errors/errors.js";

class TxWithoutSql {}

export const txWithoutSql: object = new Proxy(Object.freeze({}), {
  get: (_target, name) => {
    // JavaScript reads these properties from every value that is returned, awaited or printed.
    if (typeof name === "symbol" || name === "then" || name === "toJSON") return undefined;
    // Query builders read the constructor's name before they call a method, and only the call must throw.
    if (name === "constructor") return TxWithoutSql;
    throw new InvalidInputError(
      `The memory store has no SQL, and so no tx.${name}: for ctx.transaction connect to a database, in a test with testPawl({ store: "sqlite:./test.db" }) or the URL of your own.`,
    );
  },
});
