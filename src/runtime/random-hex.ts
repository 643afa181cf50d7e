import type { Runtime } from "./runtime.js";

/** Random bytes as text, two hexadecimal digits per byte. */
export function randomHex(runtime: Runtime, byteCount: number): string {
  const { buffer, byteOffset, byteLength } = runtime.randomBytes(byteCount);
  return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
}
