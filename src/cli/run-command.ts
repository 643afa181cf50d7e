/** What the commands that tell one run something have in common: they say what became of it. */

import type { RunInfo } from "../client/inspect/run-info.js";
import type { RunHandle } from "../client/run-handle.js";
import type { Call } from "./command.js";
import { withRun } from "./find-run.js";

/** @param later what is said when somebody executes the run, and does as he is told at the next step */
export function tell(call: Call, act: (run: RunHandle) => Promise<void>, later: string): Promise<void> {
  return withRun(call, async (run) => {
    await act(run);
    const info = await run.get();
    call.out.print(info, () => sentence(info, later));
  });
}

function sentence({ id, workflow, status }: RunInfo, later: string): string {
  const after = status === "running" ? `; ${later}` : "";
  return `Run ${id} of ${workflow} is ${status}${after}.`;
}
