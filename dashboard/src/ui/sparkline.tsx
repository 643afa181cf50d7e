/** A small chart without axes. Its text twin is the label. */
export function Sparkline({
  values,
  label,
  width = 120,
  height = 24,
  color = "var(--accent)",
}: {
  readonly values: readonly number[];
  readonly label: string;
  readonly width?: number;
  readonly height?: number;
  readonly color?: string;
}) {
  const max = Math.max(1, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map(
    (value, index) => `${(index * step).toFixed(1)},${(height - 1 - (value / max) * (height - 3)).toFixed(1)}`,
  );
  return (
    <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <title>{label}</title>
      <polygon points={`0,${height} ${points.join(" ")} ${width},${height}`} fill={color} opacity="0.14" />
      <polyline points={points.join(" ")} fill="none" stroke={color} stroke-width="1.5" stroke-linejoin="round" />
    </svg>
  );
}
