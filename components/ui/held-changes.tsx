'use client';

import { clsx } from 'clsx';
import { SettledButton } from './misclick-guard';

/** `3 moved, 2 new · Show`: changes that a held list does not show yet. A press shows them. */
export function HeldChanges(props: { moved: number; added: number; onShow: () => void; className?: string }) {
  const { moved, added, onShow, className } = props;
  if (moved + added === 0) return null;
  const words = [moved > 0 && `${moved.toLocaleString('en')} moved`, added > 0 && `${added.toLocaleString('en')} new`];
  return (
    <SettledButton
      of="changes"
      onPress={onShow}
      className={clsx(
        'hit tabular shrink-0 whitespace-nowrap rounded-sm text-2xs text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink',
        className,
      )}
    >
      {words.filter(Boolean).join(', ')} · Show
    </SettledButton>
  );
}
