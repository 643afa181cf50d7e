/** The pictures on the pages are those that their code draws: a page asserts the text, and shows the same. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const docs = join(import.meta.dirname, "../../docs");

test.each(readdirSync(docs).filter((name) => name.endsWith(".md")))(
  "%s shows no picture that it does not draw",
  (name) => {
    const page = readFileSync(join(docs, name), "utf8");
    const blocks = (language: string) =>
      [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
        ([, text]) => text as string,
      );
    const code = blocks("ts").join("\n");
    for (const picture of blocks("mermaid")) expect(code).toContain(`.toBe(\`${picture}\`)`);
  },
);
