/** What the dashboard does with schedules, as commands and as TypeScript. */

/** A word of a command line. Single quotes keep everything else from the shell. */
const word = (text: string): string =>
  /^[\w@%+=:,.][\w@%+=:,./-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

const quoted = (text: string): string => JSON.stringify(text);

export interface Equivalent {
  readonly cli: string;
  readonly typescript: string;
}

export const listCommand = (app: string): string => `pawl schedules${app === "" ? "" : ` --app ${word(app)}`}`;

export const listTypeScript = (app: string): string =>
  `const { schedules } = await pawl.schedules.list(${app === "" ? "" : `{ app: ${quoted(app)} }`});`;

export const showEquivalent = (name: string): Equivalent => ({
  cli: `pawl schedules show ${word(name)}`,
  typescript: `const schedule = await pawl.schedules.get(${quoted(name)});`,
});

/** @param until an instant, or how long: "1 day"; "": until it is resumed */
export function pauseEquivalent(name: string, until: string): Equivalent {
  const isInstant = /^\d{4}-/.test(until);
  const value = isInstant ? `new Date(${quoted(until)})` : quoted(until);
  return {
    cli: `pawl schedules pause ${word(name)}${until === "" ? "" : ` --until ${word(until)}`} --reason "…"`,
    typescript: `await pawl.schedules.pause(${quoted(name)}, {${until === "" ? "" : ` until: ${value},`} reason: "…" });`,
  };
}

export const resumeEquivalent = (name: string): Equivalent => ({
  cli: `pawl schedules resume ${word(name)}`,
  typescript: `await pawl.schedules.resume(${quoted(name)});`,
});

export const triggerEquivalent = (name: string, force: boolean): Equivalent => ({
  cli: `pawl schedules trigger ${word(name)}${force ? " --force" : ""}`,
  typescript: `const { runId } = await pawl.schedules.trigger(${quoted(name)}${force ? ", { force: true }" : ""});`,
});

export function backfillEquivalent(name: string, range: { readonly from: string; readonly to: string }): Equivalent {
  const { from, to } = range;
  return {
    cli: `pawl schedules backfill ${word(name)} --from ${from} --to ${to} --dry-run`,
    typescript: `await pawl.schedules.backfill(${quoted(name)}, {\n  from: new Date(${quoted(from)}),\n  to: new Date(${quoted(to)}),\n  dryRun: true,\n});`,
  };
}

export const deleteEquivalent = (name: string): Equivalent => ({
  cli: `pawl schedules delete ${word(name)}`,
  typescript: `await pawl.schedules.delete(${quoted(name)});`,
});
