/** Why a driver could not be loaded, in a sentence: it is not installed, or it is in a bundle where it does not work. */
import { StoreError } from "../../core/errors/errors.js";

const notFound = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/**
 * @param name of the package
 * @param missing what is said when it is not installed
 */
export function driverError(name: string, missing: string, cause: unknown): StoreError {
  if (isNotInstalled(name, cause)) return new StoreError(missing, { transient: false, cause });
  const [why] = (cause instanceof Error ? cause.message : String(cause)).split("\n");
  return new StoreError(
    `The driver ${name} cannot be loaded: ${why?.replace(/(?:\. Tried)?[.:]*$/, "")}. If this program is bundled, leave the driver out of the bundle (esbuild: --external:${name}) and install it beside.`,
    { transient: false, cause },
  );
}

/** The package itself, and not something that it needs. Loaders other than Node's own may wrap the error. */
function isNotInstalled(name: string, error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { code, message, cause } = error as { readonly code?: unknown; readonly message?: unknown; cause?: unknown };
  const isIt = notFound.has(String(code)) && new RegExp(`'${name}(/[\\w/]+)?'`).test(String(message));
  return isIt || isNotInstalled(name, cause);
}
