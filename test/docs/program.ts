/** A documentation page as a program: only its code, with each line at the same line number as on the page. */

export interface Page {
  /** "class-style.md" */
  readonly name: string;
  readonly text: string;
}

/** The line of the block that is being executed, so that a failed page can report where it stopped. */
export const currentBlock: { line?: number } = globalThis as { line?: number };

/**
 * What a program calls in place of `console.log(value); // sample`: the sample output on the page must equal the real
 * output.
 */
export type ShowCheck = (line: number, values: readonly unknown[], samples: readonly unknown[]) => void;

const fence = /^```(\S*)/;
const sampleOutput = /^(\s*)console\.log\((.+)\); \/\/ (.+)$/;

/**
 * One module per page: blocks may use what earlier blocks declare. Prose becomes empty lines, so that line 40 of the
 * program is line 40 of the page, and errors name the right line.
 */
export function programOf({ name, text }: Page): string {
  let language: string | null = null;
  const lines = text.split("\n").map((content, index) => {
    const mark = fence.exec(content);
    if (mark === null) return language === "ts" ? withSampleChecked(content, index + 1) : "";
    language = language === null ? checkLanguage(mark[1] as string, `${name}:${index + 1}`) : null;
    return language === "ts" ? `(globalThis as { line?: number }).line = ${index + 1};` : "";
  });
  if (language !== null) throw new Error(`${name} ends within a block of code.`);
  return lines.join("\n");
}

function withSampleChecked(content: string, line: number): string {
  const [, indent, values, samples] = sampleOutput.exec(content) ?? [];
  if (values === undefined) return content;
  const check = "(globalThis as unknown as { shows(line: number, values: unknown[], samples: unknown[]): void }).shows";
  return `${indent}${check}(${line}, [${values}], [${samples}]);`;
}

/** A block in another language would look like code without ever being run. */
function checkLanguage(language: string, where: string): string {
  if (/^(typescript|tsx|mts|js|javascript|jsx|mjs)$/i.test(language))
    throw new Error(`${where}: no test runs a block of "${language}"; call it "ts".`);
  return language;
}

export const hasCode = (page: Page): boolean => programOf(page).trim() !== "";
