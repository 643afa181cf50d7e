import type { ExecutionInfo } from "../../client/executions.js";
import { DamagedDataError } from "../../core/errors.js";
import { command } from "../command.js";
import { drawRun } from "../draw-run.js";
import { withRun } from "../find-run.js";

export const show = command({
  name: "show",
  about: "Show one run: its steps, what it waits for, its last error",
  args: ["<run>"],
  options: { all: { type: "boolean", about: "Draw every execution, however many there are" } },
  example: "pawl show 019a8c3f",

  run: (call) =>
    withRun(call, async (run) => {
      const info = await run.get();
      const [executions, progress, explanation] = await Promise.all([
        run.executions().catch(noneIfDamaged),
        run.progress(),
        run.explain(),
      ]);
      call.out.print({ ...info, executions, progress, why: explanation }, () =>
        drawRun({ info, executions, progress, explanation }, call.out, call.options.all === true),
      );
    }),
});

/** Why it is damaged is in the explanation, as long as there is one. */
function noneIfDamaged(error: unknown): ExecutionInfo[] {
  if (error instanceof DamagedDataError) return [];
  throw error;
}
