import { ownPostgres } from "../../scripts/servers.mjs";
import { sized } from "../support/effort.js";
import { testRestarts } from "./restarts.js";

// An immediate stop, as by `pg_ctl restart -m immediate`: no checkpoint, the next start recovers from the log.
testRestarts({ kind: "postgres", server: ownPostgres, crashes: sized(2, 5) });
