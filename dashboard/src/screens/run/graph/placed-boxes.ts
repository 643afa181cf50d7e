/** Where the boxes and edges of a graph are drawn. */
import type { DrawnBox } from "./collapse.js";

export interface PlacedBox extends DrawnBox {
  /** The upper left corner. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

export interface PlacedEdge {
  readonly from: number;
  readonly to: number;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Layout {
  readonly boxes: readonly PlacedBox[];
  readonly edges: readonly PlacedEdge[];
  readonly width: number;
  readonly height: number;
}
