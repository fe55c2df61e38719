'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { isSnoozed } from '@interlude/protocol/inbox-rules';
import { useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { useServerNow } from '@/components/ui/clock';
import { LazyPopover } from '@/components/ui/lazy-popover';

/** A mark on items. `taken-over` also claims items that someone else has claimed. */
export type Mark = 'seen' | 'unseen' | 'claimed' | 'taken-over' | 'released' | 'unsnoozed' | { snoozedUntil: number };

/**
 * Actions that mark a row's items. They overlay the end of the owner's name while the pointer or the focus is in the row;
 * on touch screens, they are always beside it.
 *
 * @param item the row's most urgent item
 * @param about name of the row
 */
export function ItemActions(props: {
  item: InboxItem;
  about: string;
  person: string | null;
  onMark: (mark: Mark) => void;
}) {
  const { item, about, person, onMark } = props;
  const { claim, seenAt } = item;
  const isPutOff = useServerNow((now) => isSnoozed(item, now));
  const mayAct = useMayAct();
  const claimed = claim === null ? 'none' : claim.by.id === person ? 'mine' : 'theirs';
  if (!mayAct) return null;
  return (
    <span className="flex items-center gap-x-3 pointer-fine:opacity-0 transition-opacity focus-within:opacity-100 group-focus-within/row:opacity-100 group-hover/row:opacity-100 sm:gap-x-4 sm:pointer-fine:absolute sm:pointer-fine:inset-y-0 sm:pointer-fine:right-0 sm:pointer-fine:bg-ground sm:pointer-fine:pl-4">
      <ActionButton
        about={about}
        label={seenAt === null ? 'Seen' : 'Unseen'}
        onPress={() => onMark(seenAt === null ? 'seen' : 'unseen')}
      />
      {claimed === 'none' && <ActionButton about={about} label="Claim" onPress={() => onMark('claimed')} />}
      {claimed === 'mine' && <ActionButton about={about} label="Release" onPress={() => onMark('released')} />}
      {claimed === 'theirs' && <ActionButton about={about} label="Take over" onPress={() => onMark('taken-over')} />}
      {isPutOff ? (
        <ActionButton about={about} label="Wake" onPress={() => onMark('unsnoozed')} />
      ) : (
        <SnoozeMenu about={about} onSnooze={(snoozedUntil) => onMark({ snoozedUntil })} />
      )}
    </span>
  );
}

/** At least 24 px high, for touch. */
const ACTION =
  'inline-flex min-h-6 items-center justify-center rounded-sm text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink';

/** The one button of a row that stands out. Not filled: a page may have many. */
const MAIN =
  'inline-flex min-h-7 items-center rounded border border-line-strong px-2.5 font-medium text-ink hover:bg-raised';

export function ActionButton(props: {
  about: string;
  label: string;
  isMain?: boolean;
  isExpanded?: boolean;
  onPress: () => void;
}) {
  const { about, label, isMain = false, isExpanded, onPress } = props;
  return (
    <button
      type="button"
      aria-label={`${label}: ${about}`}
      aria-expanded={isExpanded}
      onClick={onPress}
      className={isMain ? MAIN : ACTION}
    >
      {label}
    </button>
  );
}

const HOUR_MS = 3_600_000;

export function snoozeForAnHour(now: number): Mark {
  return { snoozedUntil: now + HOUR_MS };
}

/** Hides items for a while. */
export function SnoozeMenu({ about, onSnooze }: { about: string; onSnooze: (until: number) => void }) {
  const now = useServerNow((at) => at - (at % 60_000));
  const morning = () => {
    const date = new Date(now);
    date.setDate(date.getDate() + 1);
    return date.setHours(9, 0, 0, 0);
  };
  const untils: Record<string, () => number> = {
    'For an hour': () => now + HOUR_MS,
    'For four hours': () => now + 4 * HOUR_MS,
    'Until 9:00 tomorrow': morning,
  };
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        ref={button}
        type="button"
        aria-label={`Snooze: ${about}`}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className={ACTION}
      >
        Snooze
      </button>
      <LazyPopover
        isOpen={isOpen}
        label={`Snooze: ${about}`}
        button={button}
        onClose={() => setOpen(false)}
        className="w-44 py-1"
      >
        {Object.entries(untils).map(([words, until]) => (
          <button
            key={words}
            type="button"
            onClick={() => {
              setOpen(false);
              onSnooze(until());
            }}
            className="flex h-7 w-full items-center px-3 text-left text-ink-2 text-xs -outline-offset-2 hover:bg-raised hover:text-ink"
          >
            {words}
          </button>
        ))}
      </LazyPopover>
    </>
  );
}
