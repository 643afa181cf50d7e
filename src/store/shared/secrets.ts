/** Keeps passwords and tokens of database URLs out of everything that is displayed or logged. */
import { inspect } from "node:util";
import { InvalidInputError, StoreError } from "../../core/errors/errors.js";

/** Matches up to the last "@", because a password may contain an "@" that should have been percent-encoded. */
const userAndPassword = /^([a-z][a-z0-9+.-]*:\/\/)([^:@]*):(.*)@/is;
const secretParameters = /([?&][^=&#]*(?:pass|pwd|token|secret|key)[^=&#]*=)([^&#]*)/gi;

/** The URL for display, without secrets. */
export const redactUrl = (url: string): string =>
  url.replace(userAndPassword, "$1$2:…@").replace(secretParameters, "$1…");

/** Shorter secrets are not searched for, because they also occur by chance in ordinary words. */
const minSecretLength = 3;

/** The secrets as they are written in the URL and as the driver decodes them, the longest first. */
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
 * A driver's error may contain the URL (Node's "Invalid URL" has it in a property). Such an error is replaced by one
 * with the same message but without the secrets and without a cause.
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

/**
 * Refuses a URL whose password contains an unencoded "/" or "#": the rest of the password would be read as the name of
 * the host or database, and those names are displayed.
 *
 * @throws InvalidInputError for such a URL
 */
export function checkPasswordEncoding(url: string): void {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*[/#][^?]*@/is.test(url)) return;
  throw new InvalidInputError(
    'The URL of the database has an "@" behind a "/" or "#". In a password these are written as %40, %2F and %23.',
  );
}
