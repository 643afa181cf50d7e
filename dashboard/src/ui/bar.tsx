/** A horizontal bar that shows a share. The number that it stands for is written beside it. */
import css from "./bar.module.css";

export function Bar({
  share,
  tone = "accent",
}: {
  /** From 0 to 1. */
  readonly share: number;
  readonly tone?: "accent" | "failed" | "paused";
}) {
  // A value that is not zero stays visible.
  const percent = share <= 0 ? 0 : Math.max(2, Math.min(100, share * 100));
  return (
    <span class={css.track} aria-hidden="true">
      <span class={`${css.bar} ${css[tone]}`} style={{ width: `${percent}%` }} />
    </span>
  );
}
