import type { Runtime } from "./runtime.js";

/** Random bytes, two hexadecimal digits for each. */
export function randomHex(runtime: Runtime, bytes: number): string {
  const { buffer, byteOffset, byteLength } = runtime.randomBytes(bytes);
  return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
}
