/**
 * The pictures on the pages are the graphs that their code draws: a page asserts the text and shows the same picture.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const docs = join(import.meta.dirname, "../../docs");

test.each(readdirSync(docs).filter((name) => name.endsWith(".md")))(
  "%s shows a picture of each graph that its code draws, and no other picture",
  (name) => {
    const page = readFileSync(join(docs, name), "utf8");
    const blocks = (language: string) =>
      [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
        ([, text]) => text as string,
      );
    const code = blocks("ts").join("\n");
    const pictures = blocks("mermaid");
    for (const picture of pictures) expect(code).toContain(`.toBe(\`${picture}\`)`);
    // One picture for each graph with a name of its own; where a page shows one graph before and after a change, the
    // later.
    const drawn = new Map(
      [...code.matchAll(/^const (\w+) = graph\("(\w+)"/gm)].map(([, graph, name]) => [name, graph]),
    );
    for (const graph of drawn.values()) expect(code).toContain(`expect(${graph}.toMermaid())`);
    expect(pictures).toHaveLength(drawn.size);
  },
);
