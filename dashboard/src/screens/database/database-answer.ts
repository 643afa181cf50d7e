import type { Answer } from "../../api/api.js";

/** What the API tells about the database. */
export type Database = Answer<"getDatabase">;
