/**
 * The object store of the service, observed by the test: it records which process sent which request, and can hold or
 * refuse requests.
 */
import { ObjectStore, type Refusal, type StoreRequest } from "../../examples/files/object-store.js";
import { until } from "../support/waiting.js";

/** A request that is held. */
export interface Hold {
  /** The pid of the process that sent the request, once it has arrived. */
  readonly arrived: Promise<number>;
  /** Lets the request through. */
  release(): void;
}

type Rule = (request: StoreRequest) => Promise<Refusal | null> | null;

export class WatchedStore extends ObjectStore {
  readonly requests: { readonly what: string; readonly pid: number }[] = [];
  readonly #rules: Rule[] = [];

  put(path: string, text: string): void {
    this.objects.set(path, Buffer.from(text));
  }

  text(path: string): string | undefined {
    return this.objects.get(path)?.toString();
  }

  /** The pids of the processes that sent this request, in order: one for each time that the body of a step ran. */
  askedBy(what: string): number[] {
    return this.requests.filter((request) => request.what === what).map(({ pid }) => pid);
  }

  /** Holds the next such request; later ones pass. */
  hold(what: string): Hold {
    let release = () => {};
    const released = new Promise<null>((resolve) => {
      release = () => resolve(null);
    });
    const arrived = new Promise<number>((resolve) => {
      this.#once(what, (request) => {
        resolve(pidOf(request));
        return released;
      });
    });
    return { arrived, release };
  }

  /** Holds every request with this prefix until requests from this many processes have arrived. */
  holdUntilAskedBy(processes: number, beginning: string): void {
    const asking = new Set<number>();
    this.#rules.push((request) => {
      if (!request.what.startsWith(beginning)) return null;
      asking.add(pidOf(request));
      return until(() => asking.size >= processes).then(() => null);
    });
  }

  /** Refuses the next such request. */
  refuse(what: string, refusal: Refusal): void {
    this.#once(what, async () => refusal);
  }

  protected override async admit(request: StoreRequest): Promise<Refusal | null> {
    this.requests.push({ what: request.what, pid: pidOf(request) });
    for (const rule of [...this.#rules]) {
      const answer = rule(request);
      if (answer !== null) return answer;
    }
    return null;
  }

  #once(what: string, answer: (request: StoreRequest) => Promise<Refusal | null>): void {
    const rule: Rule = (request) => {
      if (request.what !== what) return null;
      this.#rules.splice(this.#rules.indexOf(rule), 1);
      return answer(request);
    };
    this.#rules.push(rule);
  }
}

const pidOf = ({ by }: StoreRequest) => Number(by.split("/")[1]);
