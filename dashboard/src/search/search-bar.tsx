/** The search bar: a text field that offers qualifiers and values, and applies the search with Enter. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { IconButton } from "../ui/button.js";
import { Icon } from "../ui/icon.js";
import css from "./search-bar.module.css";
import { type Suggestion, suggest } from "./suggestions.js";

export function SearchBar({
  text: applied,
  workflows,
  hasProblem,
  onApply,
}: {
  /** The search that the list shows. */
  readonly text: string;
  readonly workflows: readonly string[];
  readonly hasProblem: boolean;
  readonly onApply: (text: string) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(applied);
  const [caret, setCaret] = useState(applied.length);
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  // A space behind the last word stays, so that the next word can follow.
  useEffect(() => setText((before) => (before.trim() === applied ? before : applied)), [applied]);
  const { start, end, items } = useMemo(() => suggest(text, caret, workflows), [text, caret, workflows]);
  const isListOpen = isOpen && items.length > 0;

  const edit = (next: string, at: number) => {
    setText(next);
    setCaret(at);
    setChosen(-1);
  };
  const apply = (next: string) => {
    setOpen(false);
    setChosen(-1);
    onApply(next.trim());
  };
  const take = ({ text: word, isUnfinished }: Suggestion) => {
    const tail = text.slice(end);
    const next = text.slice(0, start) + word + (isUnfinished || tail.startsWith(" ") ? "" : " ") + tail;
    const at = start + word.length + (isUnfinished ? 0 : 1);
    edit(next, at);
    requestAnimationFrame(() => {
      input.current?.focus();
      input.current?.setSelectionRange(at, at);
    });
    // A finished word is a search of its own, and the next word can follow.
    if (!isUnfinished) onApply(next.trim());
    else setOpen(true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.preventDefault();
      if (isListOpen) setOpen(false);
      else input.current?.blur();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const item = isListOpen ? items[chosen] : undefined;
      if (item !== undefined) take(item);
      else apply(text);
    } else if (event.key === "Tab" && isListOpen && chosen >= 0) {
      event.preventDefault();
      take(items[chosen] as Suggestion);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (!isListOpen) setOpen(true);
      else setChosen((chosen + step + items.length + (chosen < 0 && step < 0 ? 1 : 0)) % items.length);
    }
  };
  const readCaret = (event: { readonly currentTarget: HTMLInputElement }) =>
    setCaret(event.currentTarget.selectionStart ?? 0);
  return (
    <div class={css.bar}>
      <Icon name="search" size={14} />
      <input
        ref={input}
        id="run-search"
        class={css.input}
        type="text"
        role="combobox"
        aria-label="Search runs"
        aria-expanded={isListOpen}
        aria-controls="run-search-list"
        aria-autocomplete="list"
        aria-invalid={hasProblem}
        aria-activedescendant={isListOpen && chosen >= 0 ? `run-search-${chosen}` : undefined}
        placeholder="Search: status:failed workflow:order took:>5m, or the id of a run"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          edit(event.currentTarget.value, event.currentTarget.selectionStart ?? 0);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onClick={readCaret}
        onKeyUp={readCaret}
        onKeyDown={onKeyDown}
      />
      {text === "" ? (
        <kbd class={css.key}>/</kbd>
      ) : (
        <IconButton
          icon="close"
          label="Clear the search"
          onClick={() => {
            edit("", 0);
            apply("");
          }}
        />
      )}
      {isListOpen ? <SuggestionList {...{ items, chosen, setChosen, take }} /> : null}
    </div>
  );
}

function SuggestionList({
  items,
  chosen,
  setChosen,
  take,
}: {
  readonly items: readonly Suggestion[];
  readonly chosen: number;
  readonly setChosen: (index: number) => void;
  readonly take: (item: Suggestion) => void;
}) {
  return (
    <div id="run-search-list" class={css.list} role="listbox" aria-label="Suggestions">
      {items.map((item, index) => (
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the text field, which has the keyboard
        <div
          key={item.text}
          id={`run-search-${index}`}
          role="option"
          aria-selected={index === chosen}
          class={css.item}
          onMouseMove={() => setChosen(index)}
          // Not a click: that would come after the field has lost the focus and closed the list.
          onMouseDown={(event) => {
            event.preventDefault();
            take(item);
          }}
        >
          <code>{item.text}</code>
          <span>{item.about}</span>
        </div>
      ))}
    </div>
  );
}
