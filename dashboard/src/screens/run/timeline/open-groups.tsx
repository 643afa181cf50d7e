/** Which groups of rows are open, and the questions for their members. */
import { useEffect } from "preact/hooks";
import type { Answer, Query } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { location, setSearch } from "../../../router/router.js";
import { parseWaterfall, type Row } from "./waterfall.js";

export interface OpenGroups {
  readonly ids: readonly string[];
  isOpen(id: string): boolean;
  toggle(id: string): void;
}

/** More would be more requests at a time than a page should make. */
const maxOpen = 8;

/** The open groups are in the address, so that a link shows the same rows. */
export function useOpenGroups(): OpenGroups {
  const ids = readIds(location.value.search.get("open"));
  const toggle = (id: string) => {
    const next = ids.includes(id) ? ids.filter((one) => one !== id) : [...ids, id].slice(-maxOpen);
    setSearch({ open: next.length === 0 ? null : JSON.stringify(next) }, { replace: true });
  };
  return { ids, isOpen: (id) => ids.includes(id), toggle };
}

function readIds(text: string | null): string[] {
  try {
    const ids: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "string").slice(0, maxOpen) : [];
  } catch {
    return [];
  }
}

/** Reads the members of one group and shows nothing: the rows are shown by the list that they belong to. */
export function GroupMembers({
  path,
  query,
  onMembers,
}: {
  readonly path: string;
  readonly query: Query;
  readonly onMembers: (rows: readonly Row[]) => void;
}) {
  const { data } = useQuery<Answer<"getRunWaterfall">>(path, query);
  useEffect(() => {
    if (data !== undefined) onMembers(parseWaterfall(data).rows);
  }, [data]);
  return null;
}
