/** Reads .env files, as far as their common form goes: NAME=value, with quotes, `export` and comments. */

const line =
  /^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^#\n]*?))[ \t\r]*(?:#.*)?$/gm;

export function parseEnv(text: string): [name: string, value: string][] {
  return [...text.matchAll(line)].map(([, name, double, single, bare]) => [
    name as string,
    double?.replace(/\\(.)/g, "$1") ?? single ?? bare ?? "",
  ]);
}
