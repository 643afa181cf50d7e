/** Returns the thrown value, or an error in place of a value that throws when it is inspected, such as a revoked proxy. */
export function toSafeThrown(thrown: unknown): unknown {
  try {
    void (thrown instanceof Error);
    return thrown;
  } catch (error) {
    return new Error("The thrown value cannot be inspected.", { cause: error });
  }
}
