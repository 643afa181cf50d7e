/** Ids of runs and attempts, and the hashes and random numbers that they are made of. */
import { InvalidInputError } from "../errors/errors.js";

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether the text is a UUID of any version, with hyphens. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/**
 * A UUID of version 7. It begins with the time, so that the database adds new rows at the end of an index.
 *
 * @param randomHex ten random bytes in hexadecimal
 */
export function uuidv7(nowMs: number, randomHex: string): string {
  if (!(nowMs >= 0 && nowMs < 2 ** 48)) throw new InvalidInputError(`The time ${nowMs} does not fit into a UUID.`);
  if (!RANDOM_HEX.test(randomHex)) throw new InvalidInputError("A UUID needs 10 random bytes, in hexadecimal.");
  const time = Math.floor(nowMs).toString(16).padStart(12, "0");
  const variant = VARIANTS[Number.parseInt(randomHex[3] as string, 16) & 3];
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomHex.slice(0, 3)}-${variant}${randomHex.slice(4, 7)}-${randomHex.slice(7, 19)}`;
}

const RANDOM_HEX = /^[0-9a-f]{20}$/;
const VARIANTS = "89ab";

/**
 * The id of a child run, which is the same whenever the parent is replayed. It begins with the time in the parent's id, so
 * that a parent and its children are adjacent in an index. 74 bits of a SHA-256 follow: among a billion children of one
 * parent, the probability of a collision is about 1 in 38,000.
 */
export function childRunId(parentRunId: string, node: string, index: number): string {
  return derivedRunId(parentRunId, `${index}:${node}`);
}

/** The id of the run that executes one attempt at a node of the parent's graph. It differs from every `childRunId`. */
export function attemptRunId(parentRunId: string, node: string, attempt: number): string {
  return derivedRunId(parentRunId, `attempt ${attempt}:${node}`);
}

function derivedRunId(parentRunId: string, childPath: string): string {
  // The length prefix makes parent and path unambiguous: ("r", "11:a") and ("r1", "1:a") get different ids.
  const bytes = sha256(`${parentRunId.length}:${parentRunId}${childPath}`);
  if (isUuid(parentRunId)) {
    writeUint32(bytes, 0, Number.parseInt(parentRunId.slice(0, 8), 16));
    const low = Number.parseInt(parentRunId.slice(9, 13), 16);
    bytes[4] = low >>> 8;
    bytes[5] = low;
  }
  return formatUuid(bytes, 8);
}

/** A UUID that begins with the instant, like one of version 7, and continues with a hash of the text. */
export function derivedUuid(instant: number, text: string): string {
  const bytes = sha256(text);
  // Instants before 1970 have no place in the prefix.
  const time = Math.max(0, Math.floor(instant));
  writeUint32(bytes, 0, Math.floor(time / 2 ** 16));
  bytes[4] = (time >>> 8) & 0xff;
  bytes[5] = time & 0xff;
  return formatUuid(bytes, 8);
}

const NOT_HEADER_SAFE = /[^ -$&-~]/gu;

/**
 * The id of one attempt at one node. User code may pass it to other systems as an idempotency key, so it consists of
 * printable ASCII (other characters are percent-encoded) and can be sent in an HTTP header.
 */
export function executionId(runId: string, node: string, attempt: number): string {
  return `${runId}:${node.replace(NOT_HEADER_SAFE, encodeURIComponent)}:${attempt}`;
}

/** A random number generator (53 bits, 0 ≤ n < 1) that the seed determines: sfc32, seeded with a SHA-256. */
export function seededRandom(seed: string): () => number {
  const hash = sha256(seed);
  let a = readInt32(hash, 0);
  let b = readInt32(hash, 4);
  let c = readInt32(hash, 8);
  let counter = readInt32(hash, 12);
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return sum >>> 0;
  };
  for (let round = 0; round < 12; round++) next();
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}

/** A UUID of version 4 from a source of random numbers. */
export function seededUuid(random: () => number): string {
  const bytes = new Uint8Array(16);
  for (let at = 0; at < 16; at += 4) writeUint32(bytes, at, Math.floor(random() * 2 ** 32));
  return formatUuid(bytes, 4);
}

function formatUuid(b: Uint8Array, version: number): string {
  const hex = (at: number) => HEX[b[at] as number];
  b[6] = ((b[6] as number) & 0x0f) | (version << 4);
  b[8] = ((b[8] as number) & 0x3f) | 0x80;
  return (
    `${hex(0)}${hex(1)}${hex(2)}${hex(3)}-${hex(4)}${hex(5)}-${hex(6)}${hex(7)}-${hex(8)}${hex(9)}-` +
    `${hex(10)}${hex(11)}${hex(12)}${hex(13)}${hex(14)}${hex(15)}`
  );
}

function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

function readInt32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}

// ---- SHA-256 (FIPS 180-4), implemented here because core imports nothing, not even node:crypto ----------------------

// biome-ignore format: a table
const ROUND_CONSTANTS = Int32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
);
// biome-ignore format: a table
const INITIAL_HASH = Int32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
);
const UTF8 = new TextEncoder();
const SCHEDULE = new Int32Array(64); // The message schedule of `mixBlock`, allocated once; each block overwrites it.

let nativeSha256: ((text: string) => string) | null = null;

/**
 * Sets a faster SHA-256 (in hexadecimal) for `sha256Hex`. `connect.ts` passes it in, because core may not import
 * node:crypto.
 */
export function setNativeSha256(hash: (text: string) => string): void {
  nativeSha256 = hash;
}

/** The SHA-256 of a text, in hexadecimal. */
export function sha256Hex(text: string): string {
  if (nativeSha256 !== null) return nativeSha256(text);
  let hex = "";
  for (const byte of sha256(text)) hex += HEX[byte];
  return hex;
}

/** CPU time on a loaded machine: 1.9 µs for 50 bytes, 3.2 µs for 100; node:crypto's createHash took 2.2 and 2.3 µs. */
function sha256(text: string): Uint8Array {
  const message = UTF8.encode(text);
  const padded = new Uint8Array((((message.length + 8) >> 6) + 1) << 6);
  padded.set(message);
  padded[message.length] = 0x80;
  writeUint32(padded, padded.length - 8, Math.floor(message.length / 2 ** 29));
  writeUint32(padded, padded.length - 4, message.length << 3);

  const hash = INITIAL_HASH.slice();
  for (let at = 0; at < padded.length; at += 64) mixBlock(hash, padded, at);

  const digest = new Uint8Array(32);
  for (let word = 0; word < 8; word++) writeUint32(digest, word * 4, hash[word] as number);
  return digest;
}

// Every index is in range, so `as number` is safe; `?? 0` would cost a check in each round.
function mixBlock(hash: Int32Array, bytes: Uint8Array, start: number): void {
  for (let i = 0; i < 16; i++) SCHEDULE[i] = readInt32(bytes, start + i * 4);
  for (let i = 16; i < 64; i++) {
    const x = SCHEDULE[i - 15] as number;
    const y = SCHEDULE[i - 2] as number;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    SCHEDULE[i] = (((SCHEDULE[i - 16] as number) + s0) | 0) + (((SCHEDULE[i - 7] as number) + s1) | 0);
  }
  let a = hash[0] as number;
  let b = hash[1] as number;
  let c = hash[2] as number;
  let d = hash[3] as number;
  let e = hash[4] as number;
  let f = hash[5] as number;
  let g = hash[6] as number;
  let h = hash[7] as number;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const constant = ((ROUND_CONSTANTS[i] as number) + (SCHEDULE[i] as number)) | 0;
    const t1 = (((((h + s1) | 0) + ((e & f) ^ (~e & g))) | 0) + constant) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  hash[0] = (hash[0] as number) + a;
  hash[1] = (hash[1] as number) + b;
  hash[2] = (hash[2] as number) + c;
  hash[3] = (hash[3] as number) + d;
  hash[4] = (hash[4] as number) + e;
  hash[5] = (hash[5] as number) + f;
  hash[6] = (hash[6] as number) + g;
  hash[7] = (hash[7] as number) + h;
}
