/** Passwords and tokens in the URL of a database: they are for the driver, and for nothing that people read. */
import { inspect } from "node:util";
import { InvalidInputError, StoreError } from "../../core/errors/errors.js";

/** Between the scheme and the last "@": a password may hold characters that should have been percent-encoded. */
const userAndPassword = /^([a-z][a-z0-9+.-]*:\/\/)([^:@]*):(.*)@/is;
const secretParameters = /([?&][^=&#]*(?:pass|pwd|token|secret|key)[^=&#]*=)([^&#]*)/gi;

/** The URL for people to see. */
export const withoutSecrets = (url: string): string =>
  url.replace(userAndPassword, "$1$2:…@").replace(secretParameters, "$1…");

/** Shorter ones would be found in ordinary words. */
const shortestSecret = 3;

/** As they are in the URL, and as the driver decodes them. */
function secretsOf(url: string): string[] {
  const written = [
    userAndPassword.exec(url)?.[3] ?? "",
    ...[...url.matchAll(secretParameters)].map(([, , value]) => value),
  ];
  const all = new Set(written.flatMap((secret = "") => [secret, decoded(secret)]));
  return [...all].filter((secret) => secret.length >= shortestSecret).sort((a, b) => b.length - a.length);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * What a driver says may repeat the URL (Node's "Invalid URL" has it in a property). Such an error is replaced by one with
 * the same message, without the secrets and without what it was made of.
 */
export function withoutSecretsOf(url: string, error: unknown, token = ""): unknown {
  const secrets = token.length < shortestSecret ? secretsOf(url) : [...secretsOf(url), token];
  const shown = inspect(error, { depth: 6, showHidden: true });
  if (!secrets.some((secret) => shown.includes(secret))) return error;
  const message = error instanceof Error ? error.message : String(error);
  const clean = secrets.reduce((text, secret) => text.replaceAll(secret, "…"), message);
  if (error instanceof InvalidInputError) return new InvalidInputError(clean);
  return new StoreError(`The database cannot be opened: ${clean}`, {
    transient: error instanceof StoreError && error.transient,
  });
}

/** With "/" or "#" in it, the rest of a password would count as the name of the host or of the database, and be shown. */
export function checkPassword(url: string): void {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*[/#][^?]*@/is.test(url)) return;
  throw new InvalidInputError(
    'The URL of the database has an "@" behind a "/" or "#". In a password these are written as %40, %2F and %23.',
  );
}
