/** What an empty database shows: how to define a workflow, start it and watch it. */
import { href } from "../../router/router.js";
import { Snippet } from "../../ui/copy.js";
import { Section } from "../../ui/page.js";
import css from "./first-steps.module.css";

const definition = `// workflows.ts
import { workflow } from "pawl";

export const order = workflow("order", async (ctx, { sku }: { sku: string }) => {
  const shelf = await ctx.step("reserve", () => \`shelf of \${sku}\`);
  await ctx.sleep("cool down", "10s");
  return { shelf };
});`;

export function FirstSteps() {
  return (
    <Section title="This database has no runs yet">
      <ol class={css.steps}>
        <li>
          <h3>Define a workflow</h3>
          <p>Each step is recorded when it is done, and never runs again.</p>
          <Snippet code={definition} what="the workflow" />
        </li>
        <li>
          <h3>Run a worker, and start a run</h3>
          <p>The worker executes the workflows of the file. Give both the address of this database with --url.</p>
          <Snippet code="npx pawl worker workflows.ts" what="the command" />
          <Snippet code={`npx pawl start order '{ "sku": "A-1" }'`} what="the command" />
        </li>
        <li>
          <h3>Watch it</h3>
          <p>
            The run appears here and on <a href={href("/runs")}>Runs</a> at once.{" "}
            <a href={href("/workflows")}>Workflows</a> has a form that starts more.
          </p>
        </li>
      </ol>
    </Section>
  );
}
