import { ownSqld } from "../../scripts/servers.mjs";
import { testRestarts } from "./restarts.js";

// kill -9.
testRestarts({ kind: "sqld", server: ownSqld, crashes: 3 });
