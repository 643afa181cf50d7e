import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../actions/confirm-dialog.js";
import { type Answer, type ApiError, post } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { may } from "../../shell/me.js";
import { Button } from "../../ui/button.js";
import { Select, TextField } from "../../ui/field.js";
import { plural } from "../../ui/format.js";
import { Note } from "../../ui/page.js";
import { showToast } from "../../ui/toast.js";
import css from "./database.module.css";

type PruneResult = Answer<"prune">;

const dayMs = 86_400_000;
const defaultAge = "30 days";

/** Counts first what would be deleted. Only what was counted can be confirmed. */
export function PruneDialog({
  retentionMs,
  onClose,
}: {
  readonly retentionMs: number | null;
  readonly onClose: () => void;
}) {
  const [olderThan, setOlderThan] = useState(
    retentionMs === null ? defaultAge : `${Math.max(1, Math.round(retentionMs / dayMs))} days`,
  );
  const [workflow, setWorkflow] = useState("");
  const { counted, count, isCounting, error, forget } = useDryRun({ olderThan, workflow });
  const { data } = useQuery<Answer<"listWorkflows">>("v1/workflows");
  const names = (data?.workflows ?? []).map(({ name }) => [name, name] as const);
  const scope = { olderThan: olderThan.trim(), ...(workflow === "" ? {} : { workflow }) };
  const flag = workflow === "" ? "" : ` --workflow ${JSON.stringify(workflow)}`;
  return (
    <ConfirmDialog
      title="Prune old runs"
      label={counted === null || counted.runs === 0 ? "Delete" : `Delete ${plural(counted.runs, "run")}`}
      icon="cross"
      permission="prune"
      isDangerous
      isComplete={counted !== null && counted.runs > 0}
      reasonHint="Written to the log of the server, with your name if the server knows it."
      cli={`pawl prune --older-than ${JSON.stringify(scope.olderThan)}${flag}`}
      typescript={`await pawl.prune(${JSON.stringify(scope)});`}
      send={async (reason) => {
        // More runs may have become old since they were counted; the person has not agreed to those.
        const limit = Math.max(1, counted?.runs ?? 1);
        const { runs } = await post<PruneResult>("v1/prune", { ...scope, ...reason, limit });
        showToast(`${plural(runs, "run was", "runs were")} deleted.`);
      }}
      onClose={onClose}
    >
      <p>
        Runs that ended this long ago are deleted with their logs and children. This cannot be undone. Their idempotency
        keys may be used again. Runs that have not ended stay.
      </p>
      <div class={css.scope}>
        <TextField
          label="Ended at least this long ago"
          value={olderThan}
          error={error?.message ?? null}
          onInput={(event) => {
            setOlderThan(event.currentTarget.value);
            forget();
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") void count();
          }}
        />
        <Select
          label="Workflow"
          value={workflow}
          options={[["", "All workflows"], ...names]}
          onChange={(event) => {
            setWorkflow(event.currentTarget.value);
            forget();
          }}
        />
      </div>
      <div class={css.dryRun}>
        <Button
          disabled={isCounting || scope.olderThan === "" || !may("prune")}
          onClick={() => void count()}
          icon="search"
        >
          {isCounting ? "Counting…" : "Count what would be deleted"}
        </Button>
        <div role="status">{counted === null ? null : <Counted {...counted} />}</div>
      </div>
    </ConfirmDialog>
  );
}

function Counted({ runs, trees }: PruneResult) {
  if (runs === 0) return <Note tone="pending">Nothing ended that long ago, so there is nothing to delete.</Note>;
  const children =
    runs > trees ? `, ${plural(runs - trees, "of them a child or retry", "of them children and retries")}` : "";
  return (
    <Note tone="failed">
      <strong>{plural(runs, "run")}</strong> would be deleted{children}.
    </Note>
  );
}

/** The dry run: deletes nothing. A change of the scope makes its answer worthless. */
function useDryRun({ olderThan, workflow }: { readonly olderThan: string; readonly workflow: string }) {
  const [counted, setCounted] = useState<PruneResult | null>(null);
  const [isCounting, setCounting] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const forget = () => {
    setCounted(null);
    setError(null);
  };
  const count = async () => {
    forget();
    setCounting(true);
    try {
      const scope = { olderThan: olderThan.trim(), ...(workflow === "" ? {} : { workflow }) };
      setCounted(await post<PruneResult>("v1/prune", { ...scope, dryRun: true }));
    } catch (failure) {
      setError(failure as ApiError);
    } finally {
      setCounting(false);
    }
  };
  return { counted, count, isCounting, error, forget };
}
