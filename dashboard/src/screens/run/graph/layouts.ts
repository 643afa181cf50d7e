/** Layouts from the worker. The same graph is laid out once, whatever happens to the states of its nodes. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LayoutRequest } from "./layout.js";
import type { Layout } from "./placed-boxes.js";
import { type GraphNode, isSameStructure, type Structure, structureOf } from "./structure.js";

interface WorkerAnswer {
  readonly id: number;
  readonly layout?: Layout;
  readonly error?: string;
}

let worker: Worker | null = null;
let lastId = 0;
const waiting = new Map<number, { resolve(layout: Layout): void; reject(error: Error): void }>();

function openWorker(): Worker {
  const opened = new Worker(new URL("./layout-worker.ts", import.meta.url), { type: "module" });
  opened.addEventListener("message", ({ data: { id, layout, error } }: MessageEvent<WorkerAnswer>) => {
    const asked = waiting.get(id);
    waiting.delete(id);
    if (layout !== undefined) asked?.resolve(layout);
    else asked?.reject(new Error(error));
  });
  opened.addEventListener("error", () => {
    for (const { reject } of waiting.values()) reject(new Error("The browser could not run the worker for layouts."));
    waiting.clear();
    worker = null;
  });
  return opened;
}

function requestLayout(request: LayoutRequest): Promise<Layout> {
  worker ??= openWorker();
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker?.postMessage({ id, request });
  });
}

/** The structure of the nodes: the same object as before unless the structure has changed. */
export function useStructure(nodes: readonly GraphNode[]): Structure {
  const known = useRef<Structure | null>(null);
  return useMemo(() => {
    const structure = structureOf(nodes);
    if (known.current === null || !isSameStructure(known.current, structure)) known.current = structure;
    return known.current;
  }, [nodes]);
}

export interface LayoutState {
  /** The latest layout, which stays until the next one is ready. */
  readonly layout: Layout | null;
  readonly error: string | null;
}

/** @param request null: the size of the drawing is not known yet; the same object: nothing has changed */
export function useLayout(request: LayoutRequest | null): LayoutState {
  const [state, setState] = useState<LayoutState>({ layout: null, error: null });
  useEffect(() => {
    if (request === null) return;
    let isCurrent = true;
    requestLayout(request).then(
      (layout) => isCurrent && setState({ layout, error: null }),
      (error: Error) => isCurrent && setState({ layout: null, error: error.message }),
    );
    return () => {
      isCurrent = false;
    };
  }, [request]);
  return state;
}
