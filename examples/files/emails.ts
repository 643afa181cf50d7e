/** Workflows that a worker of their own may serve, or one that has others too. */
import { workflow } from "pawl";
import { upload } from "./bucket.js";

export const sendEmails = workflow("send_emails", async (ctx, params: { to: string[]; text: string }) => {
  // A step for each: if the worker dies half-way, nobody who has got the message gets it again.
  for (const to of params.to)
    await ctx.step(`send to ${to}`, ({ idempotencyKey }) =>
      upload({ bucket: "outbox", key: encodeURIComponent(idempotencyKey) }, `To: ${to}\n\n${params.text}\n`),
    );
  return { sent: params.to.length };
});
