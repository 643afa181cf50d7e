/** Turns names of steps into labels of metrics. A name may contain data, and each label is a time series that costs money. */

const maxNamesPerWorkflow = 200;
const nodeIdPattern = /^n_[0-9a-f]{8}$/;
const repetition = /#\d+/g;

export class StepLabels {
  readonly #names = new Map<string, Set<string>>();

  labelFor(workflow: string, key: string): string {
    // The ids of nodes are random, so all nodes share one label.
    const name = nodeIdPattern.test(key) ? "node" : key.replace(repetition, "");
    let names = this.#names.get(workflow);
    if (names === undefined) this.#names.set(workflow, (names = new Set()));
    if (names.has(name)) return name;
    if (names.size >= maxNamesPerWorkflow) return "other";
    names.add(name);
    return name;
  }
}
