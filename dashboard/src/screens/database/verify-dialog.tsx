import { ConfirmDialog } from "../../actions/confirm-dialog.js";
import { type Answer, post } from "../../api/api.js";

export type Verification = Answer<"verify">;

/** Asks before the whole database is read. */
export function VerifyDialog({
  onDone,
  onClose,
}: {
  readonly onDone: (verification: Verification) => void;
  readonly onClose: () => void;
}) {
  return (
    <ConfirmDialog
      title="Verify the database"
      label="Verify"
      icon="check"
      permission="prune"
      reasonHint="Written to the log of the server."
      cli="pawl verify"
      typescript="const { found, differences } = await pawl.verify();"
      send={async (reason) => onDone(await post<Verification>("v1/verify", reason))}
      onClose={onClose}
    >
      <p>
        Every run is computed again from its log and compared with the tables. Nothing is changed. It reads the whole
        database, which takes minutes if there are a million runs.
      </p>
    </ConfirmDialog>
  );
}
