/** The error for a driver that cannot be loaded: it is not installed, or it is in a bundle where it does not work. */
import { StoreError } from "../../core/errors/errors.js";

const notFoundCodes = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/**
 * @param name the name of the package
 * @param notInstalledMessage the message for a package that is not installed
 */
export function createDriverError(name: string, notInstalledMessage: string, cause: unknown): StoreError {
  if (isNotInstalled(name, cause)) return new StoreError(notInstalledMessage, { transient: false, cause });
  const [reason] = (cause instanceof Error ? cause.message : String(cause)).split("\n");
  return new StoreError(
    `The driver ${name} cannot be loaded: ${reason?.replace(/(?:\. Tried)?[.:]*$/, "")}. If this program is bundled, leave the driver out of the bundle (esbuild: --external:${name}) and install it next to the bundle.`,
    { transient: false, cause },
  );
}

/** Whether the package itself is missing, not one of its dependencies. Loaders other than Node's may wrap the error. */
function isNotInstalled(name: string, error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { code, message, cause } = error as { readonly code?: unknown; readonly message?: unknown; cause?: unknown };
  const isThisPackage = notFoundCodes.has(String(code)) && new RegExp(`'${name}(/[\\w/]+)?'`).test(String(message));
  return isThisPackage || isNotInstalled(name, cause);
}
