import { sized } from "../support/effort.js";
import { testResumableKills } from "./resumable-kills.js";

testResumableKills({ kind: "sqlite", items: sized(2_000, 5_000) });
