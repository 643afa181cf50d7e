/** What can be done with the selected step. */
import { ask } from "../../../actions/action-dialog.js";
import type { Run } from "../../../actions/run-actions.js";
import { actionsForStep } from "../../../actions/step-actions.js";
import type { Answer } from "../../../api/api.js";
import { may } from "../../../shell/me.js";
import { Button } from "../../../ui/button.js";
import css from "./step-panel.module.css";

export function StepActions({
  run,
  step,
  lastEvent,
  isPresent,
}: {
  readonly run: Run;
  readonly step: Answer<"getRunStep">;
  readonly lastEvent: number;
  readonly isPresent: boolean;
}) {
  const actions = actionsForStep(run, step);
  if (actions.length === 0) return null;
  return (
    <div class={css.actions}>
      {actions.map((action) => {
        const isAllowed = isPresent && may(action.permission);
        const refusal = isPresent ? `Your access lacks “${action.permission}”.` : "You see the past.";
        return (
          <Button
            key={action.id}
            icon={action.icon}
            disabled={!isAllowed}
            {...(isAllowed ? {} : { title: refusal })}
            onClick={() => ask({ action, run, lastEvent })}
          >
            {action.id === "resume" ? "Run it again" : action.label}
          </Button>
        );
      })}
    </div>
  );
}
