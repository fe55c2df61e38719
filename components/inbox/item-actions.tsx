'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { isSnoozed } from '@interlude/protocol/inbox-rules';
import { useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { useServerNow } from '@/components/ui/clock';
import { ButtonPopover } from '@/components/ui/popover';
import { nameText } from '@/components/ui/verbatim';
import { itemTitle } from './inbox-words';

/** What a person makes of items; of `claimed`, also those that somebody else has. */
export type Mark = 'seen' | 'unseen' | 'claimed' | 'taken-over' | 'released' | 'unsnoozed' | { snoozedUntil: number };

/** What can be made of one item. */
export function ItemActions(props: {
  item: InboxItem;
  person: string | null;
  /** Shows or hides what can be done here besides; null if nothing can. */
  unfold: { label: string; isUnfolded: boolean; onUnfold: (isUnfolded: boolean) => void } | null;
  onMark: (mark: Mark) => void;
}) {
  const { item, person, unfold, onMark } = props;
  const { claim, seenAt } = item;
  const about = nameText(itemTitle(item));
  const mayAct = useMayAct();
  const isPutOff = useServerNow((now) => isSnoozed(item, now));
  const claimed = claim === null ? 'none' : claim.by.id === person ? 'mine' : 'theirs';
  return (
    <>
      {unfold !== null && (
        <ActionButton
          about={about}
          label={unfold.label}
          isExpanded={unfold.isUnfolded}
          onPress={() => unfold.onUnfold(!unfold.isUnfolded)}
        />
      )}
      {mayAct && (
        <>
          <ActionButton
            about={about}
            label={seenAt === null ? 'Seen' : 'Not seen'}
            onPress={() => onMark(seenAt === null ? 'seen' : 'unseen')}
          />
          {claimed === 'none' && <ActionButton about={about} label="Claim" onPress={() => onMark('claimed')} />}
          {claimed === 'mine' && <ActionButton about={about} label="Release" onPress={() => onMark('released')} />}
          {claimed === 'theirs' && (
            <ActionButton about={about} label="Take over" onPress={() => onMark('taken-over')} />
          )}
          {isPutOff ? (
            <ActionButton about={about} label="Wake" onPress={() => onMark('unsnoozed')} />
          ) : (
            <SnoozeMenu about={about} onSnooze={(snoozedUntil) => onMark({ snoozedUntil })} />
          )}
        </>
      )}
    </>
  );
}

/** At least 24 px high, for a finger. */
const ACTION =
  'inline-flex min-h-6 items-center rounded-sm text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink';

export function ActionButton(props: { about: string; label: string; isExpanded?: boolean; onPress: () => void }) {
  const { about, label, isExpanded, onPress } = props;
  return (
    <button
      type="button"
      aria-label={`${label}: ${about}`}
      aria-expanded={isExpanded}
      onClick={onPress}
      className={ACTION}
    >
      {label}
    </button>
  );
}

const HOUR_MS = 3_600_000;

export function snoozeForAnHour(now: number): Mark {
  return { snoozedUntil: now + HOUR_MS };
}

/** Until when not to be told of it. */
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
      {isOpen && (
        <ButtonPopover label={`Snooze: ${about}`} button={button} onClose={() => setOpen(false)} className="w-44 py-1">
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
        </ButtonPopover>
      )}
    </>
  );
}
