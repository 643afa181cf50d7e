import type { CommandMistake } from "./mistake.js";

export const mistakes: readonly CommandMistake[] = [
  {
    what: "a misspelt command",
    args: ["shwo"],
    sentence: 'There is no command "shwo"; did you mean "show"?',
  },
  {
    what: "a misspelt option",
    args: ["runs", "--stauts", "paused"],
    sentence: 'pawl runs has no option "--stauts"; did you mean "--status"?',
  },
  {
    what: "a status that does not exist",
    args: ["runs", "--status", "done"],
    sentence: '--status is one of pending, running, waiting, paused, completed, failed, canceled, not "done".',
  },
  {
    what: "a run that is not given",
    args: ["show"],
    sentence: "<run> is missing. Usage: pawl show <run>",
  },
  {
    what: "a run by something that is not an id",
    args: ["show", "order-42", "--url", "memory:"],
    sentence:
      '"order-42" is not the id of a run; `pawl runs` shows them, `pawl runs --key order-42` those with this idempotency key.',
  },
  {
    what: "a workflow that is not registered",
    args: ["start", "ordr", "{}", "--url", "memory:"],
    sentence: 'No worker has ever registered a workflow "ordr" in this database; run: pawl worker <file>',
  },
  {
    what: "an input that is not JSON",
    args: ["start", "order", "{sku: 1}"],
    sentence:
      "The input is not valid JSON (Expected property name or '}' in JSON at position 1); quote it for the shell: '{\"a\": 1}'",
  },
  {
    what: "a file that does not exist",
    args: ["worker", "workflws.js"],
    sentence: "There is no file workflws.js.",
  },
  {
    what: "a file that exports no workflow",
    args: ["worker", "empty.mjs"],
    files: { "empty.mjs": "export const answer = 42;\n" },
    sentence:
      "empty.mjs exports no workflow; export what workflow(…), graph(…), job(…) or schedule(…) returns, or a class that extends Workflow.",
  },
  {
    what: "a misspelt scheme",
    args: ["runs", "--url", "postgre://localhost/app"],
    sentence:
      '"postgre:…" is not a database URL that Pawl knows. Examples: sqlite:./pawl.db, postgres://localhost/app, mysql://localhost/app, libsql://name.turso.io, memory:',
  },
  {
    what: "a duration in a unit that does not exist",
    args: ["prune", "--older-than", "30 dayz"],
    sentence:
      'The older-than "30 dayz" has an unknown unit "dayz"; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "a debounce without a pause",
    args: ["start", "order", "{}", "--debounce", "A-1"],
    sentence: "--debounce needs --quiet, such as --quiet 5s.",
  },
  {
    what: "a pause without a key",
    args: ["start", "order", "{}", "--quiet", "5s"],
    sentence: "--quiet says how starts are merged; it needs --debounce <key>.",
  },
  {
    what: "a misspelt setting",
    args: ["runs"],
    files: { "pawl.config.json": '{ "ulr": "sqlite:./pawl.db" }\n' },
    sentence: 'pawl.config.json has a setting "ulr", which does not exist; did you mean "url"?',
  },
  {
    what: "a setting of the wrong type",
    args: ["runs"],
    files: { "pawl.config.json": '{ "concurrency": "10" }\n' },
    sentence: '"concurrency" in pawl.config.json must be a number.',
  },
  {
    what: "a setting that is empty",
    args: ["runs"],
    files: { "pawl.config.mjs": "export default { url: process.env.PAWL_MISTAKE };\n" },
    sentence: '"url" in pawl.config.mjs is empty; is the environment variable set that it comes from?',
  },
  {
    what: "settings that are not JSON",
    args: ["runs"],
    files: { "pawl.config.json": "{ url: }\n" },
    sentence: "pawl.config.json is not valid JSON: Expected property name or '}' in JSON at position 2",
  },
  {
    what: "a concurrency in words",
    args: ["worker", "empty.mjs", "--concurrency", "many"],
    files: { "empty.mjs": "export const answer = 42;\n" },
    sentence: '--concurrency takes a whole number, not "many".',
  },
  {
    what: "a command of schedules that does not exist",
    args: ["schedules", "pasue", "nightly"],
    sentence: 'pawl schedules has no "pasue"; did you mean "pause"?',
  },
  {
    what: "an option of another command of schedules",
    args: ["schedules", "next", "nightly", "--dry-run"],
    sentence: "--dry-run goes with backfill, not with next.",
  },
  {
    what: "a schedule that is not named",
    args: ["schedules", "trigger"],
    sentence: "Which schedule? Name it: pawl schedules trigger <schedule>",
  },
];
