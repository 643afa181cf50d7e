/** What is shown when there is no schedule: how to make one, in code and by the API. */
import { Snippet } from "../../ui/copy.js";
import { Section } from "../../ui/page.js";
import css from "./schedules.module.css";

const declaration = `import { schedule } from "pawl";

export const nightly = schedule("nightly_report", {
  workflow: report,
  input: ({ scheduledFor }) => ({ day: scheduledFor }),
  cron: "30 2 * * *",
  timeZone: "Europe/Berlin",
});

pawl.worker({ workflows: [report], schedules: [nightly] });`;

const put = `await pawl.schedules.put("customer-42", {
  workflow: "report",
  input: { customer: 42 },
  every: "1h",
});`;

export function NoSchedules() {
  return (
    <Section title="There are no schedules yet">
      <div class={css.first}>
        <div>
          <h3>Declare one in your code</h3>
          <p>
            Give it to a worker. It appears here when the worker starts, and changes with your code. Of several workers,
            one starts each run.
          </p>
          <Snippet code={declaration} what="the code" />
        </div>
        <div>
          <h3>Or put one while your program runs</h3>
          <p>For rules that come from your customers. Any worker fires it, and it can be deleted here.</p>
          <Snippet code={put} what="the code" />
          <p>
            In place of <code>cron</code>, a schedule can have <code>every: "45m"</code> or <code>at: [dates]</code>.
          </p>
        </div>
      </div>
    </Section>
  );
}
