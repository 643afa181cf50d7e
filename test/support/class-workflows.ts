/** Small workflow classes that tests share. */
import { type ClassOptions, type StepDeclarationOptions, Workflow } from "pawl";

/** A class with a step "work" that is the test's business, and a step "after" that shows whether the run went on. */
export function working(
  work: (w: Workflow) => unknown,
  stepOptions: StepDeclarationOptions<Workflow> = {},
  classOptions: ClassOptions<Workflow> = {},
) {
  return class Working extends Workflow {
    static {
      this.options({ name: "Working", ...classOptions });
      this.step("work", stepOptions, work);
      this.step("after", () => {});
    }
  };
}
