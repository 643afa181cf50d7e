/** The workflows of the service. Only workers load this file. */
import { gzipSync } from "node:zlib";
import { PauseError, workflow } from "pawl";
import { download, find, list, upload } from "./bucket.js";
import type { Approval, FileRef, ProcessedFile } from "./contract.js";
import { tidy } from "./tidy.js";

/** The process may die anywhere in here. The next worker reads the results of completed steps from the log. */
export const processFile = workflow("process_file", async (ctx, file: FileRef): Promise<ProcessedFile> => {
  // The output of a step is recorded, up to 1 MiB. For larger files, return the key of a copy.
  const text = await ctx.step("download", () => download(file));

  const processed = await ctx.step("process", ({ log }) => {
    log.info(`processing ${file.key}`);
    return tidy(text);
  });

  const processedKey = await ctx.step("upload", () =>
    upload({ bucket: file.bucket, key: `processed/${file.key}` }, processed),
  );
  return { processedKey, sizeBytes: Buffer.byteLength(processed) };
});

export const zipFiles = workflow("zip_files", async (ctx, params: { bucket: string; prefix: string }) => {
  const { bucket, prefix } = params;
  const keys = await ctx.step("list_files", () => list(bucket, prefix));
  const texts = await ctx.step("download_files", () => Promise.all(keys.map((key) => download({ bucket, key }))));
  const archivePath = await ctx.step("create_archive", () =>
    upload({ bucket, key: `archives/${prefix}.gz` }, gzipSync(texts.join(""))),
  );
  return { archivePath, fileCount: keys.length };
});

const recheckAfter = process.env.RECHECK_AFTER ?? "1 hour";

/** Pauses until the file is approved. Nothing is in memory meanwhile, and no worker is needed. */
export const publishFile = workflow("publish_file", async (ctx, file: FileRef & { approver: string }) => {
  await ctx.step("send_approval_request", () =>
    upload({ bucket: "outbox", key: ctx.runId }, `To: ${file.approver}\n\nMay ${file.key} be published?\n`),
  );

  // The step runs again when the signal arrives, when the interval has passed, or when an operator resumes the run. If
  // you only wait for the signal, `ctx.waitForSignal` is simpler.
  const approval = await ctx.step("wait_for_approval", async (): Promise<Approval> => {
    const by = await find({ bucket: "approvals", key: ctx.runId });
    if (by === null) throw new PauseError("Waiting for approval", { resumeOn: "approved", recheckAfter });
    return { by };
  });

  const text = await ctx.step("download", () => download(file));
  await ctx.step("publish", () => upload({ bucket: "public", key: file.key }, text));
  return { publishedKey: file.key, approvedBy: approval.by };
});
