/**
 * Asks before an action that is not about one run: what it will cause, and why it is done. The action counts as done only
 * when the server has said so.
 */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "../api/api.js";
import { refreshShown } from "../api/queries.js";
import { may, type Permission } from "../shell/me.js";
import { Button } from "../ui/button.js";
import { Snippet } from "../ui/copy.js";
import { Dialog } from "../ui/dialog.js";
import { TextField } from "../ui/field.js";
import type { IconName } from "../ui/icon.js";
import { Note } from "../ui/page.js";
import css from "./action-dialog.module.css";

export function ConfirmDialog({
  title,
  label,
  icon,
  permission,
  isDangerous = false,
  isComplete = true,
  reasonHint,
  cli,
  typescript,
  send,
  onClose,
  children,
}: {
  readonly title: string;
  /** The text of the button that does it. */
  readonly label: string;
  readonly icon: IconName;
  readonly permission: Permission;
  readonly isDangerous?: boolean;
  readonly isComplete?: boolean;
  /** Where the reason will be seen. */
  readonly reasonHint: string;
  readonly cli: string;
  readonly typescript: string;
  /** Rejects with the refusal of the server; otherwise the dialog is closed. */
  readonly send: (reason: { readonly reason?: string }) => Promise<void>;
  readonly onClose: () => void;
  /** The consequence, and what else the action needs. */
  readonly children: ComponentChildren;
}) {
  const [reason, setReason] = useState("");
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const isReady = may(permission) && isComplete && !isSending;
  const confirm = async () => {
    setSending(true);
    setError(null);
    try {
      await send(reason.trim() === "" ? {} : { reason: reason.trim() });
      onClose();
    } catch (failure) {
      setError(failure as ApiError);
    } finally {
      setSending(false);
      refreshShown({ isUrgent: true });
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button
            kind={isDangerous ? "danger" : "primary"}
            icon={icon}
            disabled={!isReady}
            onClick={() => void confirm()}
          >
            {isSending ? "Sending…" : label}
          </Button>
        </>
      }
    >
      {children}
      {may(permission) ? null : <Note tone="paused">You may not do this: your access lacks “{permission}”.</Note>}
      {error === null ? null : (
        <div role="alert">
          <Note tone="failed">{error.message}</Note>
        </div>
      )}
      <TextField
        label="Reason"
        hint={reasonHint}
        value={reason}
        maxLength={1_000}
        onInput={(event) => setReason(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && isReady && !isDangerous) void confirm();
        }}
      />
      <details class={css.same}>
        <summary>The same on the command line and in TypeScript</summary>
        <Snippet code={cli} what="the command" />
        <Snippet code={typescript} what="the code" />
      </details>
    </Dialog>
  );
}
