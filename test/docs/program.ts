/** A page of the documentation as a program: its code, each line where the page has it, and nothing else. */

export interface Page {
  /** "class-style.md" */
  readonly name: string;
  readonly text: string;
}

/** Where a program leaves the line of the block that it is in, for whoever wonders where it got stuck. */
export const place: { line?: number } = globalThis as { line?: number };

/** What a program calls in place of `console.log(value); // sample`: the sample output on the page must be the output. */
export type ShowCheck = (line: number, values: readonly unknown[], samples: readonly unknown[]) => void;

const fence = /^```(\S*)/;
const sampleOutput = /^(\s*)console\.log\((.+)\); \/\/ (.+)$/;

/**
 * One module per page: what a block declares, the blocks below it may use. Prose becomes empty lines, so that line 40 of
 * the program is line 40 of the page, and whoever complains about it names the right one.
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

/** Under another name it would look like code, and never be run. */
function checkLanguage(language: string, where: string): string {
  if (/^(typescript|tsx|mts|js|javascript|jsx|mjs)$/i.test(language))
    throw new Error(`${where}: no test runs a block of "${language}"; call it "ts".`);
  return language;
}

export const hasCode = (page: Page): boolean => programOf(page).trim() !== "";
