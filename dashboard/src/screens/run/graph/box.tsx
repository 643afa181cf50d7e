/** One box of a drawing: an icon, the name, and the state in words. */
import { databaseNow, secondTick } from "../../../shell/me.js";
import { escapeHidden } from "../../../ui/format.js";
import { Icon } from "../../../ui/icon.js";
import { iconOf } from "../../../ui/status.js";
import { formatDuration } from "../../../ui/time.js";
import { type BoxFace, toneOfFace } from "./box-face.js";
import css from "./drawing.module.css";
import { boxHeight } from "./layout.js";
import type { PlacedBox } from "./placed-boxes.js";
import type { GraphNode } from "./structure.js";

interface BoxProps {
  readonly index: number;
  readonly box: PlacedBox;
  readonly face: BoxFace;
  /** The node, unless the box stands for several. */
  readonly node: GraphNode | undefined;
  readonly isCritical: boolean;
  readonly isSelected: boolean;
  readonly isTabStop: boolean;
  readonly onActivate: () => void;
  readonly onKey: (event: KeyboardEvent) => void;
  readonly onFocus: (isByKeyboard: boolean) => void;
}

export function Box({
  index,
  box,
  face,
  node,
  isCritical,
  isSelected,
  isTabStop,
  onActivate,
  onKey,
  onFocus,
}: BoxProps) {
  const detail = `${face.detail}${tookText(node)}`;
  const isStack = box.kind !== "node";
  const classes = [
    css.box,
    css[toneOfFace(face)],
    isCritical ? css.critical : "",
    face.state === "pending" ? css.dashed : "",
  ];
  return (
    // biome-ignore lint/a11y/useSemanticElements: a drawing cannot have HTML buttons
    <g
      class={classes.join(" ")}
      transform={`translate(${box.x} ${box.y})`}
      data-box={index}
      data-state={face.state ?? ""}
      role="button"
      tabIndex={isTabStop ? 0 : -1}
      aria-label={`${face.title} ${detail}. ${face.more}${isCritical ? " On the critical path." : ""}`}
      {...(isStack ? {} : { "aria-pressed": isSelected })}
      onClick={onActivate}
      onKeyDown={onKey}
      onFocus={(event) => onFocus((event.currentTarget as Element).matches(":focus-visible"))}
    >
      {face.title === box.title ? null : <title>{escapeHidden(box.title)}</title>}
      {isStack ? <rect class={css.stack} x={4} y={4} width={box.width} height={boxHeight} rx={6} /> : null}
      <rect class={css.frameOfBox} width={box.width} height={boxHeight} rx={6} />
      {face.state === null ? null : (
        <g class={css.icon} transform="translate(10 15)">
          <Icon name={iconOf(face.state)} size={14} />
        </g>
      )}
      <text class={css.title} x={face.state === null ? 14 : 32} y={detail === "" ? 26 : 18}>
        {`${face.title} `}
      </text>
      {detail === "" ? null : (
        <text class={css.detail} x={32} y={34}>
          {detail}
        </text>
      )}
    </g>
  );
}

/** "· 320 ms": how long the node took, or has been taking until now. */
function tookText(node: GraphNode | undefined): string {
  // There is no room for both the attempt and the duration; the list has them.
  if (node === undefined || node.startedAt === null || node.attempt > 1) return "";
  if (node.finishedAt === null) {
    if (node.state !== "executing") return "";
    void secondTick.value;
  }
  const end = node.finishedAt === null ? databaseNow() : Date.parse(node.finishedAt);
  return ` · ${formatDuration(end - Date.parse(node.startedAt))}`;
}
