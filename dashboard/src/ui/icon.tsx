/** Icons, drawn on a grid of 16 by 16. They say nothing that a word beside them does not say. */
const paths = {
  home: "M2.5 7.5 8 3l5.5 4.5V13a.5.5 0 0 1-.5.5h-3.2V10H6.2v3.5H3a.5.5 0 0 1-.5-.5z",
  runs: "M3 4h10M3 8h10M3 12h6",
  workflows: "M3 3.5h4v3H3zM9 9.5h4v3H9zM7 5h2.5a1.5 1.5 0 0 1 1.5 1.5v3",
  errors: "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.3",
  queues: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11M5 3v3M9 6.5v3M6.5 10v3",
  limits: "M2.5 12a5.5 5.5 0 1 1 11 0M8 12l2.6-3.6M4.9 12h.01M11.1 12h.01",
  schedules: "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.5V5M10.5 2.5V5M8 9v1.8l1.3.8",
  workers: "M5 5h6v6H5zM7 2.5V5M9 2.5V5M7 11v2.5M9 11v2.5M2.5 7H5M2.5 9H5M11 7h2.5M11 9h2.5",
  database:
    "M3 4.5c0-1.1 2.2-2 5-2s5 .9 5 2-2.2 2-5 2-5-.9-5-2zM3 4.5v7c0 1.1 2.2 2 5 2s5-.9 5-2v-7M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 13.5 13.5",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  check: "M3.5 8.5 6.5 11.5 12.5 4.5",
  done: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM5.5 8.2 7.3 10l3.2-3.8",
  cross: "M4 4l8 8M12 4l-8 8",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.5 12.5 8 5 12.5z",
  clock: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 5v3.2l2.2 1.6",
  late: "M4.5 2.5h7M4.5 13.5h7M5.5 2.5c0 3 5 4 5 5.5s-5 2.5-5 5.5M10.5 2.5c0 3-5 4-5 5.5s5 2.5 5 5.5",
  retry: "M12.5 8A4.5 4.5 0 1 1 11 4.6M11.2 2v2.8H8.4",
  skip: "M4 3.5 10 8l-6 4.5zM12 3.5v9",
  signal: "M3 12.5h2v-3H3zM7 12.5h2v-6H7zM11 12.5h2v-9h-2z",
  stop: "M4.5 4.5h7v7h-7z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  down: "M4 6.5 8 10.5 12 6.5",
  right: "M6.5 4 10.5 8l-4 4",
  left: "M9.5 4 5.5 8l4 4",
  up: "M4 9.5 8 5.5l4 4",
  plus: "M8 3.5v9M3.5 8h9",
  minus: "M3.5 8h9",
  close: "M4 4l8 8M12 4l-8 8",
  circle: "M8 12.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9z",
  slash: "M8 13a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM4.6 4.6l6.8 6.8",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M12.8 9.8A5.3 5.3 0 0 1 6.2 3.2a5.3 5.3 0 1 0 6.6 6.6z",
  auto: "M8 13.5a5.5 5.5 0 1 0 0-11zM8 2.5v11",
  keyboard: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.5h6",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  link: "M6.5 9.5l3-3M7 4.8l1-1a2.8 2.8 0 0 1 4 4l-1 1M9 11.2l-1 1a2.8 2.8 0 0 1-4-4l1-1",
  download: "M8 2.5v7M5 7l3 3 3-3M3 12.5h10",
  terminal: "M2.5 3h11v10h-11zM5 6l2 2-2 2M8.5 10.5h2.5",
  filter: "M2.5 3.5h11L9.2 8.6v4L6.8 11V8.6z",
  graph: "M2.5 6.5h3.5v3H2.5zM10 2.5h3.5v3H10zM10 10.5h3.5v3H10zM6 8l4-4M6 8l4 4",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width={name === "more" ? 2.4 : 1.5}
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
