/**
 * The second version compresses what it uploads. Readers of the results must know that, so it has another name: runs of
 * the first version end as they started, and triggers switch when they are ready.
 */
import { gzipSync } from "node:zlib";
import { workflow } from "pawl";
import { download, upload } from "./bucket.js";
import type { FileRef, ProcessedFile } from "./contract.js";
import { tidy } from "./tidy.js";

export const processFileV2 = workflow("process_file_v2", async (ctx, file: FileRef): Promise<ProcessedFile> => {
  const text = await ctx.step("download", () => download(file));
  const compressed = await ctx.step("process", () => gzipSync(tidy(text)));
  const processedKey = await ctx.step("upload", () =>
    upload({ bucket: file.bucket, key: `processed/${file.key}.gz` }, compressed),
  );
  return { processedKey, sizeBytes: compressed.byteLength };
});
