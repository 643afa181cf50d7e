import { DamagedDataError } from "../../core/errors/errors.js";
import { command } from "../command.js";
import { withRun } from "../run-lookup.js";
import { drawRun } from "../run-view.js";

export const show = command({
  name: "show",
  about: "Show one run: its steps, what it waits for, its last error",
  args: ["<run>"],
  options: {
    all: { type: "boolean", about: "Draw every execution, however many there are" },
    mermaid: { type: "boolean", about: "Draw its steps and their states as a flowchart for Mermaid" },
  },
  example: "pawl show f09ab42c",

  run: (call) =>
    withRun(call, async (run) => {
      if (call.options.mermaid === true) {
        const [picture, nodes] = await Promise.all([run.toMermaid(), run.nodes()]);
        return call.out.print({ id: run.id, nodes, mermaid: picture }, () => picture.trimEnd());
      }
      const info = await run.get();
      const [executions, nodes, progress, explanation] = await Promise.all([
        run.executions().catch(noneIfDamaged),
        run.nodes().catch(noneIfDamaged),
        run.progress(),
        run.explain(),
      ]);
      call.out.print({ ...info, executions, nodes, progress, why: explanation }, () =>
        drawRun({ info, executions, nodes, progress, explanation }, call.out, call.options.all === true),
      );
    }),
});

/**
 * The executions of a damaged run cannot be read, so none are shown; the run's explanation reports the damage if it can
 * be made.
 */
function noneIfDamaged(error: unknown): never[] {
  if (error instanceof DamagedDataError) return [];
  throw error;
}
