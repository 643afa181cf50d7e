import { ownMariadb } from "../../scripts/servers.mjs";
import { testRestarts } from "./restarts.js";

// kill -9.
testRestarts({ kind: "mysql", server: ownMariadb, crashes: 3 });
