// From values to positions, and the values that are written at an axis.

/** Rounded up to 1, 2 or 5 times a power of ten. */
function niceStep(rough) {
  const size = 10 ** Math.floor(Math.log10(rough));
  return size * [1, 2, 5, 10].find((factor) => factor * size >= rough * 0.999);
}

/** From 0 to a round number above the greatest value. */
export function linearScale(values, [from, to], ticks = 5) {
  const step = niceStep(Math.max(...values) / ticks);
  const top = Math.ceil((Math.max(...values) / step) * 0.999) * step;
  return {
    place: (value) => from + (value / top) * (to - from),
    ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, n) => n * step),
    base: from,
  };
}

/** Whole powers of ten around the values; within one or two of them, 2 and 5 are written too. */
export function logScale(values, [from, to]) {
  const low = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  const factors = high - low <= 2 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = low; power <= high; power += 1)
    for (const factor of factors) if (power < high || factor === 1) ticks.push(factor * 10 ** power);
  return {
    place: (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from),
    ticks,
    base: from,
  };
}

export const scales = { linear: linearScale, log: logScale };

/** 12,340 → "12.3k"; 6,848 → "6.8k"; 0.0421 → "0.042". */
export function short(value) {
  if (value === 0) return "0";
  const [size, unit] = value >= 999_500 ? [1e6, "M"] : value >= 999.5 ? [1e3, "k"] : [1, ""];
  const scaled = value / size;
  const digits = scaled >= 10 && unit !== "" ? 3 : 2;
  if (scaled >= 100) return `${Math.round(scaled)}${unit}`;
  return `${Number(scaled.toPrecision(digits))}${unit}`;
}
