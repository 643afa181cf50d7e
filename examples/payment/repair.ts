/** For operators who have repaired a gateway: resumes the payments that were waiting for it. */
import type { HeroRef, Pawl } from "pawl";
import { PaymentWorkflow } from "./payment.js";

/** Resumes the paused payments of this order and returns their number. */
export async function resumePayments(pawl: Pawl, hero: HeroRef): Promise<number> {
  const { runs } = await pawl.runs({ workflow: PaymentWorkflow, status: "paused", hero });
  for (const { id } of runs) await pawl.run(PaymentWorkflow, id).resume();
  return runs.length;
}
