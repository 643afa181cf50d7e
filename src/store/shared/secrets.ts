/** Passwords and tokens in the URL of a database: they are for the driver, and for nothing that people read. */
import { inspect } from "node:util";
import { InvalidInputError, StoreError } from "../../core/errors/errors.js";

/** Between the scheme and the last "@": a password may hold characters that should have been percent-encoded. */
const userAndPassword = /^([a-z][a-z0-9+.-]*:\/\/)([^:@]*):(.*)@/is;
const secretParameters = /([?&][^=&#]*(?:pass|pwd|token|secret|key)[^=&#]*=)([^&#]*)/gi;

/** The URL for people to see. */
export const redactUrl = (url: string): string =>
  url.replace(userAndPassword, "$1$2:…@").replace(secretParameters, "$1…");

/** Shorter ones would be found in ordinary words. */
const minSecretLength = 3;

/** As they are in the URL, and as the driver decodes them. */
function findSecrets(url: string): string[] {
  const encodedSecrets = [
    userAndPassword.exec(url)?.[3] ?? "",
    ...[...url.matchAll(secretParameters)].map(([, , value]) => value),
  ];
  const variants = new Set(encodedSecrets.flatMap((secret = "") => [secret, tryDecode(secret)]));
  return [...variants].filter((secret) => secret.length >= minSecretLength).sort((a, b) => b.length - a.length);
}

function tryDecode(text: string): string {
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
export function redactError(url: string, error: unknown, token = ""): unknown {
  const secrets = token.length < minSecretLength ? findSecrets(url) : [...findSecrets(url), token];
  const inspectedError = inspect(error, { depth: 6, showHidden: true });
  if (!secrets.some((secret) => inspectedError.includes(secret))) return error;
  const message = error instanceof Error ? error.message : String(error);
  const redactedMessage = secrets.reduce((text, secret) => text.replaceAll(secret, "…"), message);
  if (error instanceof InvalidInputError) return new InvalidInputError(redactedMessage);
  return new StoreError(`The database cannot be opened: ${redactedMessage}`, {
    transient: error instanceof StoreError && error.transient,
  });
}

/** With "/" or "#" in it, the rest of a password would count as the name of the host or of the database, and be shown. */
export function checkPasswordEncoding(url: string): void {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*[/#][^?]*@/is.test(url)) return;
  throw new InvalidInputError(
    'The URL of the database has an "@" behind a "/" or "#". In a password these are written as %40, %2F and %23.',
  );
}
