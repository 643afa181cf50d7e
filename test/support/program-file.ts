import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The file of a program that a test starts in a process of its own. `npm test` has bundled it with the built library, which a process
 * loads in a third of the time; `npm run test:long`, and Vitest by itself, start it as it is.
 *
 * @param program its path below `test`, such as "processes/programs/worker"
 */
export function programFile(program: string): string {
  const bundled = process.env.PAWL_TEST_PROGRAMS;
  return bundled ? join(bundled, `${program}.js`) : fileURLToPath(new URL(`../${program}.mjs`, import.meta.url));
}
