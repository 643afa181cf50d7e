import { ConfirmDialog } from "../../actions/confirm-dialog.js";
import { post } from "../../api/api.js";
import { escapeHidden, formatCapped } from "../../ui/format.js";
import { showToast } from "../../ui/toast.js";
import type { Queue } from "./queue.js";

/** Asks before a queue is paused or resumed. */
export function QueueDialog({ queue, onClose }: { readonly queue: Queue; readonly onClose: () => void }) {
  const { name, paused } = queue;
  const isPaused = paused !== null;
  const verb = isPaused ? "Resume" : "Pause";
  const quotedName = JSON.stringify(name);
  const shellName = /^[\w.:-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
  return (
    <ConfirmDialog
      title={`${verb} the queue ${escapeHidden(name)}`}
      label={`${verb} the queue`}
      icon={isPaused ? "play" : "pause"}
      permission="queues"
      reasonHint={isPaused ? "Written to the log of the server." : "Shown with the queue as long as it is paused."}
      cli={isPaused ? `pawl queues --resume ${shellName}` : `pawl queues --pause ${shellName} --reason "…"`}
      typescript={
        isPaused ? `await pawl.resumeQueue(${quotedName});` : `await pawl.pauseQueue(${quotedName}, "reason");`
      }
      send={async (reason) => {
        await post(`v1/queues/${encodeURIComponent(name)}/${isPaused ? "resume" : "pause"}`, reason);
        showToast(`The queue ${name} is ${isPaused ? "resumed" : "paused"}.`);
      }}
      onClose={onClose}
    >
      <p>{isPaused ? resumeConsequence(queue) : pauseConsequence(queue)}</p>
    </ConfirmDialog>
  );
}

const dueText = ({ depth, depthCapped }: Queue) =>
  depth === 0
    ? "No run is due in it now."
    : `${formatCapped(depth, depthCapped)} ${depth === 1 && !depthCapped ? "run is" : "runs are"} due in it now.`;

const pauseConsequence = (queue: Queue) =>
  `Runs that are executing finish; nothing else begins until it is resumed. ${dueText(queue)}`;

const resumeConsequence = (queue: Queue) =>
  `Workers take runs from it again at once. ${dueText(queue)}${queue.workers.length === 0 ? " No live worker takes from it, so nothing begins before one starts." : ""}`;
