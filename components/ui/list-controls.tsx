'use client';

import { clsx } from 'clsx';
import { ChevronRight, Search, X } from 'lucide';
import { type ReactNode, type RefObject, useEffect, useRef } from 'react';
import { Icon } from './icon';
import { type ShortcutId, useKeyLabels } from './shortcuts/use-shortcuts';

export function ListSearch(props: {
  /** Plural noun, such as `sessions`. */
  what: string;
  /** Focuses the field. Its key is shown. */
  shortcut?: ShortcutId;
  placeholder?: string;
  field: React.RefObject<HTMLInputElement | null>;
  value: string;
  onChange: (value: string) => void;
}) {
  const { what, shortcut, placeholder = 'Search', field, value, onChange } = props;
  return (
    <div className="flex min-w-0 flex-1 items-center border-line border-b focus-within:border-accent">
      <Icon of={Search} size={14} strokeWidth={1.75} className="shrink-0 text-ink-3" />
      <input
        ref={field}
        dir="auto"
        type="search"
        aria-label={`Search ${what}`}
        placeholder={placeholder}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="h-8 w-full bg-transparent px-2 outline-none placeholder:text-ink-3 [&::-webkit-search-cancel-button]:hidden"
      />
      {value === '' && shortcut !== undefined && <SearchKey shortcut={shortcut} />}
      {value !== '' && (
        <button
          type="button"
          aria-label="Clear search"
          onClick={() => onChange('')}
          className="hit text-ink-3 hover:text-ink"
        >
          <Icon of={X} size={14} />
        </button>
      )}
    </div>
  );
}

function SearchKey({ shortcut }: { shortcut: ShortcutId }) {
  const [key] = useKeyLabels(shortcut);
  return (
    <kbd data-search-key="" className="shrink-0 text-2xs text-ink-3 pointer-coarse:hidden">
      {key}
    </kbd>
  );
}

/**
 * Scrolls a `strip` to its first current control.
 *
 * @param current changes with the current control
 */
export function useStrip<Box extends HTMLElement = HTMLDivElement>(current: string): RefObject<Box | null> {
  const strip = useRef<Box>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: stands for the control
  useEffect(() => {
    const box = strip.current;
    const control = box?.querySelector(':checked + *, [aria-current]')?.getBoundingClientRect();
    if (!box || !control) return;
    const { left, width } = box.getBoundingClientRect();
    if (control.left < left || control.right > left + width)
      box.scrollLeft += control.left + control.width / 2 - left - width / 2;
  }, [current]);
  return strip;
}

/** A heading that folds its section, with a chevron. */
export function FoldButton(props: {
  isOpen: boolean;
  onToggle: () => void;
  disabled?: boolean;
  className?: string;
  children: ReactNode;
}) {
  const { isOpen, onToggle, disabled = false, className, children } = props;
  return (
    <button
      type="button"
      aria-expanded={isOpen}
      disabled={disabled}
      onClick={onToggle}
      className={clsx('hit -ml-1 flex items-center gap-1', className)}
    >
      <Icon of={ChevronRight} size={12} className={clsx('transition-transform', isOpen && 'rotate-90')} />
      {children}
    </button>
  );
}
