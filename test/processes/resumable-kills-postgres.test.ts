import { testResumableKills } from "./resumable-kills.js";

// Each item is a commit that the server flushes to disk. On SQLite the step has more items; the kills are as many here.
testResumableKills({ kind: "postgres", items: 15_000 });
