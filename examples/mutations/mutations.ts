/**
 * The mutations of an account: all that are pending at the start are booked concurrently, on any available worker. Then
 * they are added up, then the user is notified. Their number is known only at run time, so the graph is built then.
 */
import { job, type Pawl, PermanentError } from "pawl";
import type { Balances, Ledger, Mail } from "./bank.js";

export function ledgerImport({ ledger, balances, mail }: { ledger: Ledger; balances: Balances; mail: Mail }) {
  const bookMutation = job("BookMutation", async ({ id }: { id: number }, { idempotencyKey }) => {
    try {
      await ledger.book(idempotencyKey, id);
    } catch (error) {
      // A retry does not help: an operator has to correct the mutation.
      if (error instanceof RangeError) throw new PermanentError(error.message);
      throw error;
    }
  });

  const aggregate = job("AggregateMutations", async ({ account }: { account: string }) => {
    const cents = await ledger.balance(account);
    await balances.save(account, cents);
    return cents;
  });

  const notify = job("NotifyUser", async ({ account }: { account: string }, { idempotencyKey }) => {
    await mail.send(idempotencyKey, `The balance of ${account} is ${await balances.of(account)} cents.`);
  });

  async function importMutations(pawl: Pawl, account: string) {
    const ids = await ledger.pending(account);
    return pawl.build(
      "ledger_import",
      (g) => {
        const booked = g.fanOut(ids, { name: (id) => `mutation_${id}`, job: bookMutation, args: (id) => ({ id }) });
        g.node("aggregate", { job: aggregate, args: { account }, dependsOn: booked });
        g.node("notify", { job: notify, args: { account } });
      },
      // One bad mutation does not delay the others.
      { concurrency: 50, onNodeFailure: "continue", tags: [account] },
    );
  }

  return { jobs: [bookMutation, aggregate, notify], importMutations };
}
