import { runHref } from "../../router/router.js";
import { Button } from "../../ui/button.js";
import { Id } from "../../ui/copy.js";
import { escapeHidden, plural } from "../../ui/format.js";
import { Note, Section } from "../../ui/page.js";
import { type Column, Table } from "../../ui/table.js";
import css from "./database.module.css";
import type { Verification } from "./verify-dialog.js";

type Difference = Verification["differences"][number];

const maxShown = 200;

const columns: readonly Column<Difference>[] = [
  { title: "Kind", cell: ({ kind }) => kind },
  { title: "Run", cell: ({ runId }) => (runId === null ? "–" : <Id id={runId} to={runHref(runId)} />) },
  { title: "Difference", cell: ({ text }) => (text === null ? "hidden from you" : escapeHidden(text)) },
];

export function VerificationResult({
  verification,
  onClose,
}: {
  readonly verification: Verification;
  readonly onClose: () => void;
}) {
  const { runs, events, found, unchecked, differences } = verification;
  const checked = `${plural(runs, "run")} and ${plural(events, "event")} were compared`;
  return (
    <Section title="Verification" aside={<Button onClick={onClose}>Dismiss</Button>} isFlush>
      <div class={css.result} role="status">
        <Note tone={found === 0 ? "completed" : "failed"}>
          {found === 0 ? (
            <>
              <strong>The tables and the logs agree.</strong> {checked}.
            </>
          ) : (
            <>
              <strong>{plural(found, "difference")} between the tables and the logs.</strong> {checked}. Keep a copy of
              the database before you change anything.
            </>
          )}
          {unchecked === 0 ? "" : ` ${plural(unchecked, "hash", "hashes")} could not be computed again.`}
        </Note>
      </div>
      {differences.length === 0 ? null : (
        <Table
          label="Differences"
          columns={columns}
          rows={differences.slice(0, maxShown)}
          keyOf={({ kind, runId, text }) => `${kind} ${runId} ${text}`}
        />
      )}
      {found > Math.min(maxShown, differences.length) ? (
        <p class={css.note}>
          {plural(found - Math.min(maxShown, differences.length), "more difference")}: <code>pawl verify</code> lists up
          to 1,000.
        </p>
      ) : null}
    </Section>
  );
}
