/** About how many bytes a transition takes in a commit. */
import type { Transition } from "../../store/contract/store.js";

export function estimateBytes(transition: Transition): number {
  let bytes = 100;
  for (const event of transition.events) bytes += 50 + (event.data?.length ?? 0);
  for (const run of transition.newChildren) bytes += 200 + run.input.length;
  for (const message of transition.messages) bytes += 50 + message.data.length;
  return bytes;
}
