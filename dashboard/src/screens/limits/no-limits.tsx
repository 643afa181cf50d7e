/** What is shown when there is no limit: how to make one, of runs and of steps. */
import { Snippet } from "../../ui/copy.js";
import { Section } from "../../ui/page.js";
import css from "./limits.module.css";

const ofRuns = `import { limit, workflow } from "pawl";

const perTenant = limit("per_tenant", {
  key: "input.tenant",
  concurrency: 2,
});

export const sync = workflow("sync", { limits: [perTenant] }, handler);`;

const ofSteps = `const openai = limit("openai", {
  concurrency: 60,
  rate: { limit: 90_000, per: "1m" },
});

await ctx.step("complete", fn, { limit: openai, units: 1_200 });`;

export function NoLimits() {
  return (
    <Section title="There are no limits yet">
      <div class={css.first}>
        <div>
          <h3>Limit the runs of a workflow</h3>
          <p>
            Each key has slots of its own, over all workers and workflows that name the limit. It appears here when a
            worker starts that has it.
          </p>
          <Snippet code={ofRuns} what="the code" />
        </div>
        <div>
          <h3>Or a step that calls something shared</h3>
          <p>A slot is held while the body of the step runs. It appears here when the first such step begins.</p>
          <Snippet code={ofSteps} what="the code" />
        </div>
      </div>
    </Section>
  );
}
