/** Returns the thrown value, or an Error instead if `instanceof` throws for the value, as it does for a revoked proxy. */
export function toSafeThrown(thrown: unknown): unknown {
  try {
    void (thrown instanceof Error);
    return thrown;
  } catch (error) {
    return new Error("The thrown value cannot be inspected.", { cause: error });
  }
}
