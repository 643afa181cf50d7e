/**
 * Serves the dashboard: its files by their names, and its page at every other path outside the API, because the addresses of
 * its screens are paths.
 */
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { Assets } from "./assets.js";

/** How the dashboard presents itself. */
export interface DashboardOptions {
  /** The name of the environment, such as "production". It stands above every screen, with a colour. */
  readonly label?: string;
  /** The colour of the label. Default: red for production, amber for staging and test, blue for others. */
  readonly color?: (typeof colors)[number];
  /** The name in the corner and in the tab of the browser. Default "Pawl". */
  readonly title?: string;
}

const colors = ["red", "amber", "green", "blue", "violet", "grey"] as const;
const knownOptions = new Set<string>(["label", "color", "title"] satisfies (keyof DashboardOptions)[]);

/** No inline script or style, nothing from elsewhere, and no page of others around it. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The names of these files contain a hash of their content. */
const hashedFiles = "assets/";
const oneYear = "private, max-age=31536000, immutable";

export class Dashboard {
  readonly #assets: Assets;
  readonly #page: string;

  /** @throws InvalidInputError if an option is not valid, or the dashboard was not built */
  constructor(options: DashboardOptions, basePath: string) {
    checkOptions("httpHandler({ dashboard })", options, knownOptions);
    checkTexts(options);
    const assets = Assets.open();
    const index = assets?.find("index.html");
    if (assets === null || index == null)
      throw new InvalidInputError("The dashboard was not built. In a clone of Pawl, run npm run build.");
    this.#assets = assets;
    this.#page = new TextDecoder()
      .decode(index.content)
      .replace('<base href="./" />', `<base href="${basePath}/" />`)
      .replace('name="pawl-settings" content="{}"', () => `name="pawl-settings" content="${settingsText(options)}"`);
  }

  /** Whether a request is for a page or a file, and not for the API. */
  owns(method: string, path: string): boolean {
    return (method === "GET" || method === "HEAD") && !/^\/(?:api|live|ready)(?:\/|$)/.test(path);
  }

  /**
   * Answers with a file or with the page.
   *
   * @param path the path of the request without the base path
   * @returns null if there is no such file
   */
  answer(path: string, headers: Headers): Response | null {
    const asset = this.#assets.find(path.slice(1));
    if (asset === null || path === "/index.html")
      return path.startsWith(`/${hashedFiles}`) ? null : this.#pageResponse();
    const isGzipped = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(headers.get("accept-encoding") ?? "");
    return new Response((isGzipped ? asset.gzipped : asset.content) as Uint8Array<ArrayBuffer>, {
      headers: {
        ...commonHeaders,
        "Content-Type": asset.contentType,
        "Cache-Control": path.startsWith(`/${hashedFiles}`) ? oneYear : "no-store",
        Vary: "Accept-Encoding",
        ...(isGzipped ? { "Content-Encoding": "gzip" } : {}),
      },
    });
  }

  #pageResponse(): Response {
    const headers = { ...commonHeaders, "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" };
    return new Response(this.#page, { headers });
  }
}

const commonHeaders = {
  "Content-Security-Policy": contentSecurityPolicy,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};

function checkTexts({ label, title, color }: DashboardOptions): void {
  for (const [name, text] of Object.entries({ label, title }))
    if (text !== undefined && (typeof text !== "string" || text.trim() === "" || text.length > 60))
      throw new InvalidInputError(`httpHandler({ dashboard: { ${name} } }) must be a text of at most 60 characters.`);
  if (color !== undefined && !colors.includes(color))
    throw new InvalidInputError(`httpHandler({ dashboard: { color } }) must be one of ${colors.join(", ")}.`);
}

/** As the value of an attribute in HTML. */
const settingsText = (options: DashboardOptions): string =>
  JSON.stringify(options).replace(/[&"'<>]/g, (character) => `&#${character.charCodeAt(0)};`);
