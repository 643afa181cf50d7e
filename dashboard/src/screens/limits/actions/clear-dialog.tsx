import { ConfirmDialog } from "../../../actions/confirm-dialog.js";
import { limitPath, remove } from "../../../api/api.js";
import { Note } from "../../../ui/page.js";
import { showToast } from "../../../ui/toast.js";
import { clearEquivalent } from "../equivalents.js";
import { allowances, type Limit } from "../limit.js";

/** Asks before an override is ended. */
export function ClearDialog({ limit, onClose }: { readonly limit: Limit; readonly onClose: () => void }) {
  const { name, override, inForce, concurrency, rate } = limit;
  const { cli, typescript } = clearEquivalent(name);
  return (
    <ConfirmDialog
      title={`Clear the override: ${name}`}
      label="Clear the override"
      icon="retry"
      permission="limits"
      isComplete={override !== null}
      reasonHint="Written to the log of the server, with your name if the server knows it."
      cli={cli}
      typescript={typescript}
      send={async (reason) => {
        await remove(limitPath(name, "override"), reason);
        showToast(`The values of the code are in force for ${name}.`);
      }}
      onClose={onClose}
    >
      {override === null ? (
        <Note tone="canceled">There is no override any more: it has ended, or was cleared.</Note>
      ) : (
        <p>
          The values of the code are in force at once: {allowances({ concurrency, rate }).join(", and ")}, in place of{" "}
          {allowances(inForce).join(", and ")}. No slot is taken away.
        </p>
      )}
    </ConfirmDialog>
  );
}
