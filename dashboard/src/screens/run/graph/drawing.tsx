/**
 * Draws a graph: that of a run, with states, or that of a definition. The layout comes from a worker; when only states
 * change, the boxes stay where they are.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button, IconButton } from "../../../ui/button.js";
import { formatCount, plural } from "../../../ui/format.js";
import { Loading, Note } from "../../../ui/page.js";
import { formatDuration } from "../../../ui/time.js";
import { Box } from "./box.js";
import { faceOf } from "./box-face.js";
import { type ExpandedGroup, expandStep, maxDrawn } from "./collapse.js";
import { type CriticalPath, criticalPath } from "./critical-path.js";
import css from "./drawing.module.css";
import { arrowsOf, linesOf } from "./edge-paths.js";
import { boxHeight } from "./layout.js";
import { useLayout, useStructure } from "./layouts.js";
import { nextBox } from "./next-box.js";
import type { Layout, PlacedBox } from "./placed-boxes.js";
import { type GraphNode, topology } from "./structure.js";
import { useViewport, type Viewport } from "./viewport.js";

/** With more boxes, the Tab key goes to one of them only, and the arrow keys to the others. */
const maxTabStops = 50;
const maxReadableEdges = 1_000;
const minHeight = 160;

export interface DrawingProps {
  readonly nodes: readonly GraphNode[];
  readonly label: string;
  readonly selected: string | null;
  readonly onSelect: (id: string | null) => void;
  /** The durations of the nodes in milliseconds, for the critical path; without them, there is none. */
  readonly tookMs?: readonly number[];
}

export function Drawing({ nodes, label, selected, onSelect, tookMs }: DrawingProps) {
  const structure = useStructure(nodes);
  const isLarge = nodes.length > maxDrawn || structure.edgeCount > maxReadableEdges;
  const [isGrouped, setGrouped] = useState<boolean | null>(null);
  const [expanded, setExpanded] = useState<readonly ExpandedGroup[]>([]);
  const [windowStart, setWindowStart] = useState(0);
  const place = useRef<HTMLDivElement>(null);
  const size = usePlaceSize(place);
  const hasSize = size.width > 0;
  // The first size decides the direction: a panel that opens beside the drawing must not turn it around.
  const request = useMemo(
    () => (hasSize ? { structure, isGrouped: isGrouped ?? isLarge, expanded, windowStart, ...size } : null),
    [structure, isGrouped, isLarge, expanded, windowStart, hasSize],
  );
  const { layout, error } = useLayout(request);
  const order = useMemo(() => topology(structure).order, [structure]);
  const critical = useMemo(
    () => (tookMs === undefined ? null : criticalPath(structure, order, tookMs)),
    [structure, order, tookMs],
  );
  const activate = (box: PlacedBox) => {
    if (box.kind === "node") onSelect(nodes[box.members[0] as number]?.id ?? null);
    else if (box.kind === "group")
      setExpanded([...expanded, { key: box.key, first: urgentMembers(box, nodes), count: expandStep }]);
    else if (box.kind === "rest")
      setExpanded(
        expanded.map((group) =>
          `rest ${group.key}` === box.key ? { ...group, count: group.count + expandStep } : group,
        ),
      );
    else if (box.kind === "earlier") setWindowStart(Math.max(0, windowStart - maxDrawn / 2));
    else if (box.kind === "later") setWindowStart(windowStart + maxDrawn / 2);
  };
  return (
    <div class={css.drawing} ref={place}>
      {error !== null ? <Note tone="failed">{error} The list shows the same nodes.</Note> : null}
      {layout === null ? (
        error === null ? (
          <Loading />
        ) : null
      ) : (
        <Canvas {...{ layout, nodes, label, selected, critical, activate }} maxHeight={size.height} width={size.width}>
          <Groups
            layout={layout}
            isGrouped={isGrouped ?? isLarge}
            canChoose={!isLarge}
            hasExpanded={expanded.length > 0}
            onGroup={setGrouped}
            onCollapse={() => setExpanded([])}
          />
        </Canvas>
      )}
    </div>
  );
}

/** Failed members are the reason why people look into a group. */
const urgentMembers = ({ members }: PlacedBox, nodes: readonly GraphNode[]): number[] => {
  const withState = (state: string) => members.filter((index) => nodes[index]?.state === state);
  return [...withState("failed"), ...withState("executing")].slice(0, maxDrawn);
};

function usePlaceSize(place: { readonly current: HTMLDivElement | null }) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const measure = () =>
      setSize({ width: element.clientWidth, height: Math.max(280, Math.round(window.innerHeight * 0.66)) });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return size;
}

interface CanvasProps {
  readonly layout: Layout;
  readonly nodes: readonly GraphNode[];
  readonly label: string;
  readonly selected: string | null;
  readonly critical: CriticalPath | null;
  readonly activate: (box: PlacedBox) => void;
  readonly width: number;
  readonly maxHeight: number;
  readonly children: preact.ComponentChildren;
}

function Canvas({ layout, nodes, label, selected, critical, activate, width, maxHeight, children }: CanvasProps) {
  const frame = useRef<SVGSVGElement>(null);
  const content = useRef<SVGGElement>(null);
  const viewport = useViewport(frame, content);
  const [current, setCurrent] = useState(0);
  const faces = useMemo(() => layout.boxes.map((box) => faceOf(box, nodes)), [layout, nodes]);
  const emphasis = useMemo(() => emphasisOf(layout, critical), [layout, critical]);
  const height = heightFor(layout, width, maxHeight);
  useFit(viewport, layout, faces, { width, height });
  const onKey = (event: KeyboardEvent, index: number) => {
    const box = layout.boxes[index] as PlacedBox;
    if (event.key === "Enter" || event.key === " ") activate(box);
    else if (event.key === "+" || event.key === "-") viewport.zoom(event.key === "+" ? 1.25 : 0.8);
    else {
      const next = nextBox(layout.boxes, index, event.key);
      if (next === null) return;
      frame.current?.querySelector<SVGGElement>(`[data-box="${next}"]`)?.focus();
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <div class={css.toolbar}>
        {critical === null ? null : (
          <span class={css.legend}>
            <span class={css.criticalSample} aria-hidden="true" />
            Critical path: {plural(critical.path.length, "node")}, {formatDuration(critical.totalMs)}
          </span>
        )}
        {children}
        <span class={css.zoom}>
          <IconButton icon="minus" label="Zoom out" onClick={() => viewport.zoom(0.8)} />
          <IconButton icon="plus" label="Zoom in" onClick={() => viewport.zoom(1.25)} />
          <Button
            kind="ghost"
            onClick={() => {
              viewport.hasMoved = false;
              viewport.fit();
            }}
          >
            Fit
          </Button>
        </span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be part of a drawing */}
      <svg
        ref={frame}
        class={css.frame}
        style={{ height: `${height}px` }}
        role="group"
        aria-label={label}
        onPointerDown={(event) => viewport.down(event)}
        onPointerMove={(event) => viewport.move(event)}
        onPointerUp={(event) => viewport.up(event)}
        onPointerCancel={(event) => viewport.up(event)}
      >
        <g ref={content}>
          <path class={css.line} d={linesOf(emphasis.others)} />
          <path class={css.arrow} d={arrowsOf(emphasis.others)} />
          <path class={css.criticalLine} d={linesOf(emphasis.edges)} />
          <path class={css.criticalArrow} d={arrowsOf(emphasis.edges)} />
          {layout.boxes.map((box, index) => (
            <Box
              key={box.key}
              index={index}
              box={box}
              face={faces[index] as (typeof faces)[number]}
              node={box.kind === "node" ? nodes[box.members[0] as number] : undefined}
              isCritical={emphasis.boxes.has(index)}
              isSelected={selected !== null && box.kind === "node" && nodes[box.members[0] as number]?.id === selected}
              isTabStop={layout.boxes.length <= maxTabStops || index === Math.min(current, layout.boxes.length - 1)}
              onActivate={() => {
                if (!viewport.hasDragged) activate(box);
              }}
              onKey={(event) => onKey(event, index)}
              onFocus={(isByKeyboard) => {
                setCurrent(index);
                if (isByKeyboard) viewport.reveal({ ...box, height: boxHeight });
              }}
            />
          ))}
        </g>
      </svg>
    </>
  );
}

const heightFor = (layout: Layout, width: number, maxHeight: number): number => {
  const scale = Math.min(1, (width - 32) / Math.max(1, layout.width));
  // A wide drawing that is shown at one place of it still needs room for a few rows.
  const readable = scale < 0.55 ? layout.height * 0.8 : layout.height * scale;
  return Math.round(Math.max(minHeight, Math.min(maxHeight, readable + 40)));
};

function useFit(
  viewport: Viewport,
  layout: Layout,
  faces: readonly { readonly state: string | null }[],
  size: { readonly width: number; readonly height: number },
): void {
  useLayoutEffect(() => {
    viewport.show(layout);
  }, [layout]);
  useEffect(() => {
    if (viewport.hasMoved) return;
    viewport.show(layout);
    const urgent = ["failed", "executing"].map((state) => faces.findIndex((face) => face.state === state));
    const box = layout.boxes[urgent.find((index) => index >= 0) ?? 0];
    viewport.fit(box === undefined ? null : { ...box, height: boxHeight });
  }, [layout, size.width, size.height]);
}

/** The boxes and edges of the critical path; a group is on it when one of its members is. */
function emphasisOf(layout: Layout, critical: CriticalPath | null) {
  const boxOf = new Map<number, number>();
  for (const [index, { members }] of layout.boxes.entries()) for (const node of members) boxOf.set(node, index);
  const path = (critical?.path ?? []).map((node) => boxOf.get(node) as number);
  const steps = new Set(path.slice(1).map((to, index) => `${path[index]} ${to}`));
  const isOn = ({ from, to }: Layout["edges"][number]) => steps.has(`${from} ${to}`);
  return {
    boxes: new Set(path),
    edges: layout.edges.filter(isOn),
    others: layout.edges.filter((edge) => !isOn(edge)),
  };
}

function Groups({
  layout,
  isGrouped,
  canChoose,
  hasExpanded,
  onGroup,
  onCollapse,
}: {
  readonly layout: Layout;
  readonly isGrouped: boolean;
  readonly canChoose: boolean;
  readonly hasExpanded: boolean;
  readonly onGroup: (isGrouped: boolean) => void;
  readonly onCollapse: () => void;
}) {
  const groups = layout.boxes.filter(({ kind }) => kind === "group" || kind === "rest");
  const hidden = groups.reduce((sum, { members }) => sum + members.length, 0);
  return (
    <>
      {groups.length === 0 ? null : (
        <span class={css.legend}>
          {formatCount(hidden)} nodes that are alike are shown as {plural(groups.length, "group")}
        </span>
      )}
      {hasExpanded ? <Button onClick={onCollapse}>Collapse the groups</Button> : null}
      {canChoose && (isGrouped || layout.boxes.length > 20) ? (
        <Button onClick={() => onGroup(!isGrouped)}>
          {isGrouped ? "Show every node" : "Group nodes that are alike"}
        </Button>
      ) : null}
    </>
  );
}
