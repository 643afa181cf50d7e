/**
 * A drip campaign: a welcome, two days later a reminder unless the user has activated the account by then, a week later
 * the end. Between the mails a run is one row in the database; no process holds a timer for it.
 */
import { signal, workflow } from "pawl";
import type { Post } from "./post.js";

export interface User {
  readonly id: string;
  readonly email: string;
}

export type Ending = "activated" | "silent" | "unsubscribed";

const activated = signal<{ plan: string }>("activated");
const unsubscribed = signal("unsubscribed");

export const dripWorkflow = (post: Post) =>
  workflow("drip", async (ctx, user: User): Promise<Ending> => {
    const send = (mail: string) => ctx.step(mail, (step) => post.send(step.idempotencyKey, user.email, mail));

    await send("welcome");

    // Whichever comes first. The other is withdrawn: an activation after these two days is no longer awaited.
    const first = await ctx.race({
      activated: ctx.waitForSignal(activated),
      twoDays: ctx.sleep("two_days", "2 days"),
    });
    if (first.name === "twoDays") await send("reminder");

    const second = await ctx.waitForSignal(unsubscribed, { timeout: "7 days" });
    if (second !== null) return "unsubscribed";

    await send("goodbye");
    return first.name === "activated" ? "activated" : "silent";
  });
