import { ChevronDown, ChevronUp, Search } from 'lucide';
import type { KeyboardEvent, ReactNode } from 'react';
import { Icon } from '@/components/ui/icon';
import { MOST_HITS } from './output-rows';

/** What to look for in an output, and the way from one hit to the next. */
export function OutputSearch(props: {
  name: string;
  wanted: string;
  onWanted: (text: string) => void;
  hits: number;
  /** Which of them is looked at; null if there is none. */
  at: number | null;
  onStep: (by: 1 | -1) => void;
  /** Whoever searched goes on in what was found: takes the focus. */
  onLeave: () => void;
}) {
  const { name, wanted, onWanted, hits, at, onStep, onLeave } = props;
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Enter') onStep(event.shiftKey ? 1 : -1);
    else if (event.key !== 'Escape') return;
    else if (wanted === '') onLeave();
    else onWanted('');
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search
      aria-label={name}
      className="-outline-offset-2 flex items-center gap-2 rounded-t border-b px-2 py-1 outline-accent focus-within:outline-2"
    >
      <Icon of={Search} size={13} className="shrink-0 text-ink-3" />
      <input
        type="search"
        aria-label={`Search ${name}`}
        placeholder="Search the output"
        value={wanted}
        onChange={(event) => onWanted(event.target.value)}
        onKeyDown={onKeyDown}
        autoComplete="off"
        spellCheck={false}
        className="min-w-0 flex-1 bg-transparent font-mono text-xs outline-none placeholder:font-sans placeholder:text-ink-3 [&::-webkit-search-cancel-button]:hidden"
      />
      {wanted !== '' && (
        <>
          <span role="status" className="tabular shrink-0 text-2xs text-ink-3">
            {hitWords(hits, at)}
          </span>
          <Step label="Hit before" isDisabled={at === null} onClick={() => onStep(-1)}>
            <Icon of={ChevronUp} size={14} />
          </Step>
          <Step label="Hit after" isDisabled={at === null} onClick={() => onStep(1)}>
            <Icon of={ChevronDown} size={14} />
          </Step>
        </>
      )}
    </search>
  );
}

function hitWords(hits: number, at: number | null): string {
  if (at === null) return 'No hit';
  return `${(at + 1).toLocaleString('en')} of ${hits.toLocaleString('en')}${hits === MOST_HITS ? '+' : ''}`;
}

function Step(props: { label: string; isDisabled: boolean; onClick: () => void; children: ReactNode }) {
  const { label, isDisabled, onClick, children } = props;
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      disabled={isDisabled}
      onClick={onClick}
      className="hit shrink-0 text-ink-2 hover:text-ink disabled:text-line-strong"
    >
      {children}
    </button>
  );
}
