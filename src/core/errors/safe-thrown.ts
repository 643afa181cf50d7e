/** Anything can be thrown, also what cannot even be asked what it is (a revoked proxy): that becomes an error. */
export function toSafeThrown(thrown: unknown): unknown {
  try {
    void (thrown instanceof Error);
    return thrown;
  } catch (error) {
    return new Error("Something was thrown that cannot be looked at.", { cause: error });
  }
}
