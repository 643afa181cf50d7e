/**
 * An import: every row of a file becomes a run of its own, fifty at a time, on any available worker. Some rows are
 * always bad: a few are tolerated and listed in the summary, with more the file is refused.
 */
import { PermanentError, workflow } from "pawl";
import type { Crm, Customer, Files, Mail } from "./office.js";

export interface Import {
  readonly file: string;
  /** Who gets the summary. */
  readonly owner: string;
  /** How many bad rows the file may have; default 20. */
  readonly tolerate?: number;
}

export interface Summary {
  readonly rows: number;
  readonly imported: number;
  readonly refused: readonly { readonly row: number; readonly why: string }[];
}

export function importWorkflows({ files, crm, mail }: { files: Files; crm: Crm; mail: Mail }) {
  const importRow = workflow("import_row", async (ctx, row: string) => {
    const customer = await ctx.step("parse", () => parse(row));
    return ctx.step("save", (step) => crm.save(step.idempotencyKey, customer));
  });

  const importFile = workflow("import_file", async (ctx, { file, owner, tolerate = 20 }: Import): Promise<Summary> => {
    const rows = await ctx.step("read_file", () => files.read(file));

    // Meanwhile, the run's `waitingFor` says how many rows are done. None of this is kept in memory.
    ctx.progress(0, rows.length, "importing");
    const saved = await ctx.map(importRow, rows, { concurrency: 50, tolerate });
    ctx.progress(rows.length, rows.length, "imported");

    const refused = saved.failures.map(({ index, error }) => ({ row: index + 1, why: reasonOf(error) }));
    const summary = { rows: rows.length, imported: rows.length - refused.length, refused };
    await ctx.step("send_summary", (step) => mail.send(step.idempotencyKey, owner, describe(summary)));
    return summary;
  });

  return { importFile, importRow };
}

/** "ada@example.com,Ada Lovelace" */
function parse(row: string): Customer {
  const [email = "", name = ""] = row.split(",");
  if (!email.includes("@")) throw new PermanentError(`"${email}" is not an address.`);
  return { email, name };
}

/** The error of a failed child is the cause of the reported error. */
const reasonOf = (error: Error) => (error.cause instanceof Error ? error.cause.message : error.message);

const describe = ({ rows, imported, refused }: Summary) =>
  [`${imported} of ${rows} customers were imported.`, ...refused.map(({ row, why }) => `Row ${row}: ${why}`)].join(
    "\n",
  );
