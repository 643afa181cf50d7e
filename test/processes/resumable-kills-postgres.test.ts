import { testResumableKills } from "./resumable-kills.js";

testResumableKills({ kind: "postgres", items: 3_000 });
