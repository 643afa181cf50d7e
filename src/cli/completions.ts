/**
 * Completion scripts for shells, generated from the table of commands, so that completing a word starts no process, unless it
 * is a name in the database.
 */
import { type Command, type CommandGroup, commandsIn, globalOptions, type OptionSpecs } from "./command.js";

export const completions: Readonly<Record<string, (groups: readonly CommandGroup[]) => string>> = { bash, zsh, fish };

const optionsOf = (command: Command): OptionSpecs => ({ ...command.options, ...globalOptions });
const flags = (options: OptionSpecs) => Object.keys(options).map((name) => `--${name}`);

/**
 * Returns the words that may follow a command: the names of commands after `help`, the names of shells after
 * `completion`.
 */
function argumentWords(command: Command, groups: readonly CommandGroup[]): readonly string[] {
  if (command.name === "help") return commandsIn(groups).map(({ name }) => name);
  return command.name === "completion" ? Object.keys(completions) : (command.actions ?? []);
}

/** Prints the names in the database, or nothing if it cannot be read. */
const namesCommand = ({ printNames }: Command) => `pawl ${printNames} 2>/dev/null`;
const withNames = (commands: readonly Command[]) => commands.filter(({ printNames }) => printNames !== undefined);

function bash(groups: readonly CommandGroup[]): string {
  const commands = commandsIn(groups);
  const cases = commands.map((command) => {
    const words = [...flags(optionsOf(command)), ...argumentWords(command, groups)].join(" ");
    return `    ${command.name}) words="${words}"${command.takesFiles ? "; files=1" : ""} ;;`;
  });
  const choices = commands.flatMap((command) =>
    Object.entries(command.options).flatMap(([name, spec]) =>
      spec.choices === undefined ? [] : [`    ${command.name}:--${name}) words="${spec.choices.join(" ")}" ;;`],
    ),
  );
  const names = withNames(commands).flatMap((command) =>
    (command.actions ?? []).map(
      (action) => `    ${command.name}:${action}) words="$words $(${namesCommand(command)})" ;;`,
    ),
  );
  return `_pawl() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" chosen="" words="" files="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in ${commands.map(({ name }) => name).join("|")}) chosen="$word"; break ;; esac
  done
  case "$chosen" in
${cases.join("\n")}
    *) words="${[...commands.map(({ name }) => name), ...flags(globalOptions)].join(" ")}" ;;
  esac
  case "$chosen:$before" in
${[...choices, ...names].join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -n "$files" ]; then COMPREPLY+=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _pawl pawl`;
}

function zsh(groups: readonly CommandGroup[]): string {
  const commands = commandsIn(groups);
  const cases = commands.map((command) => {
    const specs = Object.entries(optionsOf(command)).map(([name, { type, about, choices, multiple }]) => {
      const value = type === "boolean" ? "" : `:${name}:${choices === undefined ? "" : `(${choices.join(" ")})`}`;
      return `'${multiple ? "*" : ""}--${name}[${zshText(about)}]${value}'`;
    });
    const words = argumentWords(command, groups);
    const argumentSpec = command.takesFiles
      ? "'*:file:_files'"
      : command.printNames !== undefined
        ? `'1:word:(${words.join(" ")})' '2:name:{compadd -- \${(f)"$(${namesCommand(command)})"}}'`
        : words.length > 0
          ? `'*:word:(${words.join(" ")})'`
          : "'*:argument:'";
    return `    ${command.name}) _arguments ${[...specs, argumentSpec].join(" ")} ;;`;
  });
  return `#compdef pawl
_pawl() {
  local -a commands
  commands=(
${commands.map(({ name, about }) => `    '${name}:${zshText(about)}'`).join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local chosen="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$chosen" in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_pawl" ]; then _pawl "$@"; else compdef _pawl pawl; fi`;
}

/** Escapes text for a single-quoted spec, in which brackets and colons are syntax. */
const zshText = (text: string) => text.replaceAll("'", "'\\''").replace(/[[\]:\\]/g, "\\$&");

function fish(groups: readonly CommandGroup[]): string {
  const commands = commandsIn(groups);
  const lines = commands.flatMap((command) => {
    const seen = `-n '__fish_seen_subcommand_from ${command.name}'`;
    const words = argumentWords(command, groups);
    return [
      `complete -c pawl -n __fish_use_subcommand -a ${command.name} -d '${fishText(command.about)}'`,
      ...(command.takesFiles ? [`complete -c pawl ${seen} -F`] : []),
      ...(words.length > 0 ? [`complete -c pawl ${seen} -a '${words.join(" ")}'`] : []),
      ...(command.printNames === undefined
        ? []
        : [
            `complete -c pawl ${seen.replace(/'$/, "")}; and __fish_seen_subcommand_from ${words.join(" ")}' -a '(${namesCommand(command)})'`,
          ]),
      ...Object.entries(command.options).map(([name, spec]) => `complete -c pawl ${seen} ${fishOption(name, spec)}`),
    ];
  });
  const globals = Object.entries(globalOptions).map(([name, spec]) => `complete -c pawl ${fishOption(name, spec)}`);
  return ["complete -c pawl -f", ...lines, ...globals].join("\n");
}

function fishOption(name: string, { type, about, choices }: OptionSpecs[string]): string {
  const value = type === "boolean" ? "" : choices === undefined ? " -x" : ` -x -a '${choices.join(" ")}'`;
  return `-l ${name}${value} -d '${fishText(about)}'`;
}

const fishText = (text: string) => text.replace(/['\\]/g, "\\$&");
