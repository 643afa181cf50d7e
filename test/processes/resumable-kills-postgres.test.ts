import { sized } from "../support/effort.js";
import { testResumableKills } from "./resumable-kills.js";

testResumableKills({ kind: "postgres", items: sized(2_000, 3_000) });
