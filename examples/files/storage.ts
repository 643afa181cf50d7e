/**
 * The object store as a process, for trying things by hand. It starts with these files in a bucket.
 *
 *     storage.js docs report.txt notes.txt
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { ObjectStore } from "./object-store.js";

const [bucket, ...files] = process.argv.slice(2);
const store = new ObjectStore();
for (const file of files) store.objects.set(`${bucket}/${basename(file)}`, readFileSync(file));

const { port } = new URL(process.env.STORE_URL ?? "http://127.0.0.1:9000");
console.log(`storage on ${await store.listen(Number(port))}`);
