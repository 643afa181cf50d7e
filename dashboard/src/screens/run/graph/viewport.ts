/**
 * The part of a drawing that is visible: dragging moves it; the wheel with Ctrl, two fingers and the buttons zoom. The
 * position is written to the element directly, because rendering 300 boxes for every movement would stutter.
 */
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";

interface Extent {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const minScale = 0.04;
const maxScale = 2;
/** Boxes cannot be read at a smaller scale, so a large drawing begins at one place of it. */
const readableScale = 0.55;
const padding = 16;
/** A pointer that moves less has clicked. */
const dragThreshold = 4;

export class Viewport {
  #frame: SVGSVGElement | null = null;
  #content: SVGGElement | null = null;
  #size = { width: 0, height: 0 };
  #view = { x: 0, y: 0, scale: 1 };
  readonly #pointers = new Map<number, { x: number; y: number }>();
  #travelled = 0;
  /** Whether the person has chosen what is visible; from then on, nothing else moves it. */
  hasMoved = false;

  attach(frame: SVGSVGElement | null, content: SVGGElement | null): void {
    this.#frame = frame;
    this.#content = content;
  }

  show(size: { readonly width: number; readonly height: number }): void {
    this.#size = { width: size.width, height: size.height };
  }

  /** Shows everything; or, at the start, the place that matters if everything would be too small to read. */
  fit(focus: Extent | null = null): void {
    const frame = this.#frame?.getBoundingClientRect();
    if (frame === undefined || this.#size.width === 0) return;
    const whole = Math.min(
      1,
      (frame.width - 2 * padding) / this.#size.width,
      (frame.height - 2 * padding) / this.#size.height,
    );
    const scale = focus !== null && whole < readableScale ? 0.8 : Math.max(minScale, whole);
    const target = scale === whole || focus === null ? { x: 0, y: 0, ...this.#size } : focus;
    // No empty space beside the drawing while a part of it is out of sight.
    const place = (start: number, length: number, whole: number, room: number) => {
      const centered = room / 2 - (start + length / 2) * scale;
      const last = room - padding - whole * scale;
      return last >= padding ? (room - whole * scale) / 2 : Math.max(last, Math.min(padding, centered));
    };
    this.#set(
      place(target.x, target.width, this.#size.width, frame.width),
      place(target.y, target.height, this.#size.height, frame.height),
      scale,
    );
  }

  zoom(factor: number, center?: { readonly x: number; readonly y: number }): void {
    const frame = this.#frame?.getBoundingClientRect();
    if (frame === undefined) return;
    const { x, y, scale } = this.#view;
    const at = center ?? { x: frame.width / 2, y: frame.height / 2 };
    const next = Math.max(minScale, Math.min(maxScale, scale * factor));
    this.hasMoved = true;
    this.#set(at.x - ((at.x - x) * next) / scale, at.y - ((at.y - y) * next) / scale, next);
  }

  /** Moves as little as needed to have a box in view. */
  reveal(box: Extent): void {
    const frame = this.#frame?.getBoundingClientRect();
    if (frame === undefined) return;
    const { x, y, scale } = this.#view;
    const shift = (start: number, length: number, room: number) =>
      start < padding ? padding - start : start + length > room - padding ? room - padding - start - length : 0;
    const dx = shift(x + box.x * scale, box.width * scale, frame.width);
    const dy = shift(y + box.y * scale, box.height * scale, frame.height);
    if (dx !== 0 || dy !== 0) this.#set(x + dx, y + dy, scale);
  }

  /** Whether the pointer that was just released has moved the drawing, so that its click does not count. */
  get hasDragged(): boolean {
    return this.#travelled > dragThreshold;
  }

  down(event: PointerEvent): void {
    if (event.button !== 0) return;
    if (this.#pointers.size === 0) this.#travelled = 0;
    this.#pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  move(event: PointerEvent): void {
    const before = this.#pointers.get(event.pointerId);
    if (before === undefined) return;
    const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.#pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.#travelled += Math.abs(dx) + Math.abs(dy);
    if (this.#travelled <= dragThreshold) return;
    // Not before: a captured pointer would send its click to the frame instead of the box.
    this.#frame?.setPointerCapture(event.pointerId);
    this.hasMoved = true;
    if (other === undefined) this.#set(this.#view.x + dx, this.#view.y + dy, this.#view.scale);
    else this.#pinch(before, { x: event.clientX, y: event.clientY }, other);
  }

  up(event: PointerEvent): void {
    this.#pointers.delete(event.pointerId);
  }

  #pinch(before: { x: number; y: number }, now: { x: number; y: number }, other: { x: number; y: number }): void {
    const frame = this.#frame?.getBoundingClientRect();
    if (frame === undefined) return;
    const distance = (a: { x: number; y: number }) => Math.max(1, Math.hypot(a.x - other.x, a.y - other.y));
    this.zoom(distance(now) / distance(before), {
      x: (now.x + other.x) / 2 - frame.left,
      y: (now.y + other.y) / 2 - frame.top,
    });
  }

  #set(x: number, y: number, scale: number): void {
    this.#view = { x, y, scale };
    this.#content?.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale.toFixed(4)})`);
  }
}

export function useViewport(frame: RefObject<SVGSVGElement | null>, content: RefObject<SVGGElement | null>): Viewport {
  const viewport = useMemo(() => new Viewport(), []);
  const wheel = useRef((event: WheelEvent) => {
    // Without Ctrl, the wheel scrolls the page as everywhere else.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = frame.current?.getBoundingClientRect();
    if (!box) return;
    viewport.zoom(Math.exp(-event.deltaY * 0.004), { x: event.clientX - box.left, y: event.clientY - box.top });
  });
  useEffect(() => {
    viewport.attach(frame.current, content.current);
    const element = frame.current;
    element?.addEventListener("wheel", wheel.current, { passive: false });
    return () => element?.removeEventListener("wheel", wheel.current);
  });
  return viewport;
}
