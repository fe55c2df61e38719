'use client';

import type { InboxKind } from '@interlude/protocol/vocabulary';
import type { ReactNode } from 'react';
import { FoldButton } from '@/components/ui/fold-button';
import { NEW_ROWS } from '@/components/ui/held-order';
import { useStored } from '@/components/ui/use-stored';
import { KIND_WORD } from './inbox-words';

/** What a group of items is called by. */
export type GroupName = InboxKind | 'snoozed' | typeof NEW_ROWS;

const GROUP_WORD: Record<GroupName, string> = { ...KIND_WORD, snoozed: 'Snoozed', [NEW_ROWS]: 'New' };

/**
 * Items of a kind. It folds, and stays as it was left.
 *
 * @param all how many there are where not all of them are loaded, else null
 */
export function InboxGroup(props: {
  name: GroupName;
  count: number;
  all: number | null;
  unfolds: boolean;
  selected: 'none' | 'some' | 'all';
  /** Null where there is nothing to select. */
  onSelect: ((isSelected: boolean) => void) | null;
  children: ReactNode;
}) {
  const { name, count, all, unfolds, selected, onSelect, children } = props;
  const [chosen, choose] = useStored(`fold-inbox:${name}`);
  const isFolded = !unfolds && (chosen ?? (name === 'snoozed' ? 'folded' : 'open')) === 'folded';
  const id = `inbox-${name}`;
  return (
    <section aria-labelledby={id} className="pb-5">
      <div className="-mx-2 flex items-center gap-3 border-line border-b px-2 py-1">
        <label className="-m-1.5 flex p-1.5">
          <input
            ref={(field) => {
              if (field !== null) field.indeterminate = selected === 'some';
            }}
            type="checkbox"
            aria-label={`Select all of ${GROUP_WORD[name]}`}
            checked={selected === 'all'}
            disabled={onSelect === null}
            onChange={({ target }) => onSelect?.(target.checked)}
            className="accent-ink"
          />
        </label>
        <h2 id={id} className="font-medium text-xs">
          <FoldButton
            isOpen={!isFolded}
            disabled={unfolds}
            onToggle={() => choose(isFolded ? 'open' : 'folded')}
            className="tabular hover:text-accent disabled:text-inherit"
          >
            {GROUP_WORD[name]}
            <span className="font-normal text-ink-3">
              {' '}
              {count.toLocaleString('en')}
              {all !== null && ` of ${all.toLocaleString('en')}`}
            </span>
          </FoldButton>
        </h2>
      </div>
      {!isFolded && <ul>{children}</ul>}
    </section>
  );
}
