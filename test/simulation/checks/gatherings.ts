/**
 * Starts that share runs. I1: the input of each acknowledged start is in exactly one run, which is the one that its client was told; none is
 * dropped, and none is there twice. I16: the code of a run sees one input, always the same, and each start gets the result of its own element.
 */
import type { RunRecord } from "../../../src/store/contract/store.js";
import type { Evidence, Report } from "../evidence.js";
import type { TokenStart } from "../ledger.js";

const gathering = new Set(["notes", "lists", "mail"]);

export function checkGatherings(evidence: Evidence, report: Report): void {
  const runs = new Map(evidence.runs.map((run) => [run.id, run]));
  const sent = new Set(evidence.sentTokens);
  const tokensOf = new Map<string, readonly string[]>();
  const runsOfToken = new Map<string, string[]>();
  for (const run of evidence.runs) {
    const tokens = tokensOfInput(run);
    tokensOf.set(run.id, tokens);
    for (const token of tokens) {
      runsOfToken.set(token, [...(runsOfToken.get(token) ?? []), run.id]);
      if (!sent.has(token)) report("I1", run.id, `Its input has ${token}, which was never sent.`);
    }
  }
  const repeated = repeatedTokens(evidence);
  // A run that retries another has its input.
  for (const [token, ids] of runsOfToken)
    if (!repeated.has(token) && ids.filter((id) => !isRetry(runs.get(id))).length > 1)
      report("I1", ids[1] as string, `${token} is in ${ids.length} runs.`);
  for (const start of evidence.tokenStarts) {
    const { token, run, workflow, position, outcome } = start;
    if (runs.get(run) === undefined) report("I1", run, `Start ${token} was acknowledged, and it does not exist.`);
    else if (workflow === "lists" || workflow === "mail") {
      const tokens = tokensOf.get(run) ?? [];
      if (!(position === null ? tokens.includes(token) : tokens[position] === token))
        report(
          "I1",
          run,
          `Start ${token} was acknowledged as its element ${position ?? ""}; it has ${tokens.join() || "none"}.`,
        );
    } else if (outcome !== "attached") checkLastInput(start, evidence, repeated, tokensOf.get(run) ?? [], report);
  }
  for (const { run, tokens } of evidence.gatheredInputs)
    if (tokens.join() !== tokensOf.get(run)?.join())
      report("I16", run, `Its code got ${tokens.join()}; its input is ${tokensOf.get(run)?.join()}.`);
  for (const { token, output } of evidence.tokenOutputs) checkOutput(token, output, evidence, report);
}

/**
 * Debounced starts of one input each that took effect twice, because the answer to the first call was lost. Nothing but the run
 * says which starts it has merged, so when it has begun meanwhile, another run gets the input as well. Lists have a row for each start.
 */
function repeatedTokens(evidence: Evidence): ReadonlySet<string> {
  const known = new Set<string>();
  const repeated = new Set<string>();
  const single = new Set(evidence.runs.filter(({ workflow }) => workflow === "notes").flatMap(tokensOfInput));
  for (const entry of evidence.journal) {
    if (entry.kind !== "gathered") continue;
    for (const input of entry.inputs) {
      const { token } = JSON.parse(input) as { readonly token: string };
      if (known.has(token) && single.has(token)) repeated.add(token);
      known.add(token);
    }
  }
  return repeated;
}

/** The input of the run is that of a start which was not overtaken: none that was sent after its acknowledgement has replaced it. */
function checkLastInput(
  start: TokenStart,
  evidence: Evidence,
  repeated: ReadonlySet<string>,
  tokens: readonly string[],
  report: Report,
): void {
  const [token] = tokens;
  if (token === undefined || repeated.has(token)) return;
  const source = evidence.tokenStarts.find((other) => other.token === token);
  if (source === undefined) return;
  if (source.run !== start.run)
    report("I1", start.run, `Its input is that of start ${token}, which was told run ${source.run}.`);
  const isLost = start.isLastInput
    ? source.acknowledgedAfter < start.sentAfter
    : start.acknowledgedAfter < source.sentAfter;
  if (isLost)
    report("I1", start.run, `Its input is that of start ${token}; it should be that of ${start.token} or another.`);
}

function checkOutput(token: string, output: unknown, evidence: Evidence, report: Report): void {
  const start = evidence.tokenStarts.find((other) => other.token === token);
  if (start === undefined) return;
  const isRight =
    start.workflow === "mail"
      ? output === token
      : start.workflow !== "lists" || (output as readonly unknown[]).includes(token);
  if (!isRight) report("I16", start.run, `Start ${token} was told the output ${JSON.stringify(output)}.`);
}

const isRetry = (run: RunRecord | undefined) => run?.parentNode !== null && run?.parentId === null;

function tokensOfInput({ workflow, input }: RunRecord): readonly string[] {
  if (!gathering.has(workflow) && !input.includes('"token"')) return [];
  const value = JSON.parse(input) as { readonly token?: string } | readonly { readonly token: string }[];
  if (Array.isArray(value)) return value.map(({ token }) => token);
  const { token } = value as { readonly token?: string };
  return token === undefined ? [] : [token];
}
