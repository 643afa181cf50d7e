/**
 * Turns names of steps and schedules into labels of metrics. A name may contain data, and each label is a time series that
 * costs money.
 */

const maxNamesPerWorkflow = 200;
const nodeIdPattern = /^n_[0-9a-f]{8}$/;
const repetition = /#\d+/g;

/** The first names are labels, and all others share one. */
export class BoundedLabels {
  readonly #limit: number;
  readonly #names = new Set<string>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  labelFor(name: string): string {
    if (this.#names.has(name)) return name;
    if (this.#names.size >= this.#limit) return "other";
    this.#names.add(name);
    return name;
  }
}

export class StepLabels {
  readonly #labels = new Map<string, BoundedLabels>();

  labelFor(workflow: string, key: string): string {
    // The ids of nodes are random, so all nodes share one label.
    const name = nodeIdPattern.test(key) ? "node" : key.replace(repetition, "");
    let labels = this.#labels.get(workflow);
    if (labels === undefined) this.#labels.set(workflow, (labels = new BoundedLabels(maxNamesPerWorkflow)));
    return labels.labelFor(name);
  }
}
