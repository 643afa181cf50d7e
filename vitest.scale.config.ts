import { defineConfig } from "vitest/config";
import { alias } from "./vitest.config.js";

/** `npm run test:scale`: what takes minutes and gigabytes, and is not part of `npm test`. */
export default defineConfig({
  resolve: { alias },
  test: { include: ["test/scale/*.scale.ts"], pool: "forks", hookTimeout: 3_600_000, testTimeout: 600_000 },
});
