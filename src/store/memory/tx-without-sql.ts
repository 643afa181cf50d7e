/** What transactional steps get as `tx` on the memory store, where there is no SQL: it says so to whoever uses it. */
import { InvalidInputError } from "../../core/errors/errors.js";

class TxWithoutSql {}

export const txWithoutSql: object = new Proxy(Object.freeze({}), {
  get: (_target, name) => {
    // The language itself asks for these, of whatever is returned, awaited or printed.
    if (typeof name === "symbol" || name === "then" || name === "toJSON") return undefined;
    // Query builders ask for its name before they use it: they are to come as far as the sentence below.
    if (name === "constructor") return TxWithoutSql;
    throw new InvalidInputError(
      `The memory store has no SQL, and so no tx.${name}: for ctx.transaction connect to a database, in a test with testPawl({ store: "sqlite:./test.db" }) or the URL of your own.`,
    );
  },
});
