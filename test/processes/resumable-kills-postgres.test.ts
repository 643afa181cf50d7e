import { testResumableKills } from "./resumable-kills.js";

testResumableKills({ kind: "postgres", items: 100_000 });
