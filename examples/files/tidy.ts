/** What processing a file means here: line ends as on Unix, no spaces at the ends of lines, one line end at the end. */
export function tidy(text: string): string {
  const lines = text.split(/\r?\n/).map((line) => line.trimEnd());
  return `${lines.join("\n").trimEnd()}\n`;
}
