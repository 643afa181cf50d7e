/** The client that all routes of the application share. */
import { connect, type Pawl } from "pawl";

/** Next.js loads modules again after each change, but the process stays, and with it what is global. */
const shared = globalThis as typeof globalThis & { pawl?: Promise<Pawl> | undefined };

/** Connects when it is first called, and not when the module is loaded: `next build` loads it as well. */
export function sharedPawl(): Promise<Pawl> {
  shared.pawl ??= connect(process.env.DATABASE_URL).catch((error) => {
    shared.pawl = undefined; // The next request tries again.
    throw error;
  });
  return shared.pawl;
}
