/** Shared by the commands that act on one run: sends the command, then prints the status of the run. */

import type { RunInfo } from "../client/inspect/run-info.js";
import type { RunHandle } from "../client/run-handle.js";
import type { Call } from "./command.js";
import { withRun } from "./run-lookup.js";

/** @param pendingText printed while a worker executes the run, as that worker applies the command at the next step */
export function sendCommand(call: Call, send: (run: RunHandle) => Promise<void>, pendingText: string): Promise<void> {
  return withRun(call, async (run) => {
    await send(run);
    const info = await run.get();
    call.out.print(info, () => sentence(info, pendingText));
  });
}

function sentence({ id, workflow, status }: RunInfo, pendingText: string): string {
  const after = status === "running" ? `; ${pendingText}` : "";
  return `Run ${id} of ${workflow} is ${status}${after}.`;
}
