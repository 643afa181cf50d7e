/** `npm run test:scale`: an admission beside 100,000 blocked runs touches as much as beside 100. */
import { expect, test } from "vitest";
import { emptyDatabase, isLeftOut } from "../support/databases.js";
import { admissionCosts, allowedGrowth } from "./admission-cost.js";

const blocked = Number(process.env.PAWL_SCALE_BLOCKED ?? 100_000);
const timeout = 3_600_000;

for (const kind of ["postgres", "mysql"] as const) {
  test.skipIf(isLeftOut(kind))(
    `on ${kind}, an admission does not grow with the blocked runs`,
    { timeout },
    async () => {
      const database = await emptyDatabase(kind);
      try {
        const [few, many] = await admissionCosts(kind, database.url, [100, blocked]);
        if (few === undefined || many === undefined) throw new Error("Nothing was counted.");
        console.log(
          `${kind}: an admission touches ${few.touched} beside 100 blocked runs, ${many.touched} beside ${blocked}.`,
        );
        expect(many.touched, many.details.join("\n")).toBeLessThanOrEqual(few.touched + allowedGrowth);
        expect(many.statements).toBeLessThanOrEqual(few.statements);
      } finally {
        await database.drop();
      }
    },
  );
}
