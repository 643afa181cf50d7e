import { testResumableKills } from "./resumable-kills.js";

// A fifth of SQLite's: each item waits for a commit, and 100,000 of those take more than a minute on a small machine.
testResumableKills({ kind: "postgres", items: 20_000 });
