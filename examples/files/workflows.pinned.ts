/**
 * Another way to version workflows: one name, and a `version` that the deployment sets. A run stays with the release
 * that started it. Workers of other releases do not execute it, however long it waits.
 */
import { workflow } from "pawl";
import { download, upload } from "./bucket.js";
import type { Approval, FileRef } from "./contract.js";

const release = process.env.RELEASE ?? "dev";

export const reviewFile = workflow("review_file", { version: release }, async (ctx, file: FileRef) => {
  const text = await ctx.step("download", () => download(file));
  const review = await ctx.waitForSignal<Approval>("reviewed");
  const stamp = `Reviewed by ${review?.by}, release ${release}.\n`;
  await ctx.step("stamp", () => upload({ bucket: file.bucket, key: `reviewed/${file.key}` }, text + stamp));
  return { release, reviewedBy: review?.by };
});
