import { testResumableKills } from "./resumable-kills.js";

testResumableKills({ kind: "sqlite", items: 5_000 });
