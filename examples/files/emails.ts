/** Workflows that a separate worker may serve, or a worker that also has others. */
import { workflow } from "pawl";
import { upload } from "./bucket.js";

export const sendEmails = workflow("send_emails", async (ctx, params: { to: string[]; text: string }) => {
  // A step for each recipient: if the worker dies half-way, no recipient gets the message again.
  for (const to of params.to)
    await ctx.step(`send to ${to}`, ({ idempotencyKey }) =>
      upload({ bucket: "outbox", key: encodeURIComponent(idempotencyKey) }, `To: ${to}\n\n${params.text}\n`),
    );
  return { sent: params.to.length };
});
