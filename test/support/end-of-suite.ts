import { afterAll } from "vitest";

/**
 * For the body of a file or `describe`: what its `beforeAll` opens is closed after its tests, the last first. (Vitest
 * silently forgets an `afterAll` that is called in a hook.)
 */
export function endOfSuite(): (cleanUp: () => unknown) => void {
  const cleanUps: (() => unknown)[] = [];
  afterAll(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });
  return (cleanUp) => void cleanUps.push(cleanUp);
}
