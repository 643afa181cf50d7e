/** What became of an occurrence: always an icon, words and a colour. */
import { Icon } from "../../ui/icon.js";
import css from "./outcome.module.css";
import { type OutcomeKind, outcomeLooks } from "./schedule-words.js";

export function Outcome({ kind }: { readonly kind: OutcomeKind }) {
  const { label, tone, icon } = outcomeLooks[kind];
  return (
    <span class={`${css.outcome} ${css[tone]}`} data-outcome={kind}>
      <Icon name={icon} size={12} />
      {label}
    </span>
  );
}
