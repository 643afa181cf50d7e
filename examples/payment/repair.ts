/** For the people who put a gateway right: the payments that were waiting for it go on. */
import type { HeroRef, Pawl } from "pawl";
import { PaymentWorkflow } from "./payment.js";

/** Resumes the paused payments of this order; how many there were. */
export async function resumePayments(pawl: Pawl, hero: HeroRef): Promise<number> {
  const { runs } = await pawl.runs({ workflow: PaymentWorkflow, status: "paused", hero });
  for (const { id } of runs) await pawl.run(PaymentWorkflow, id).resume();
  return runs.length;
}
