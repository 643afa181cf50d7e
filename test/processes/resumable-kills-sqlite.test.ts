import { testResumableKills } from "./resumable-kills.js";

testResumableKills({ kind: "sqlite", items: 50_000 });
