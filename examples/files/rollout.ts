/** Which version a file goes to, while the second one is tried on a share of them. */
import { createHash } from "node:crypto";
import { processFileNames } from "./contract.js";

/** The same file always gets the same answer, so that what a user sees does not change back and forth. */
export function versionFor(key: string, canaryShare: number): string {
  const chance = createHash("sha256").update(key).digest().readUInt32BE() / 2 ** 32;
  return chance < canaryShare ? processFileNames.canary : processFileNames.stable;
}
