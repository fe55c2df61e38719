'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { isSnoozed } from '@interlude/protocol/inbox-rules';
import { clsx } from 'clsx';
import { useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { useAllowable } from '@/components/requests/request-board';
import { useServerNow } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { OVERLAY } from '@/components/ui/in-view';
import { LazyPopover } from '@/components/ui/lazy-popover';
import { SettledButton } from '@/components/ui/misclick-guard';
import { nameText } from '@/components/ui/verbatim';
import { itemTitle } from './inbox-labels';
import { hasRequest, type RequestedItem } from './item-request';

/** A mark on items. `taken-over` also claims items that someone else has claimed. */
export type Mark = 'seen' | 'unseen' | 'claimed' | 'taken-over' | 'released' | 'unsnoozed' | { snoozedUntil: number };

/**
 * Marks the items of a row. Shown while the pointer or the focus is in the row; on touch screens, always.
 *
 * @param item the row's most urgent item
 */
export function ItemActions(props: { item: InboxItem; person: string | null; onMark: (mark: Mark) => void }) {
  const { item, person, onMark } = props;
  const { claim, seenAt } = item;
  const about = nameText(itemTitle(item));
  const isPutOff = useServerNow((now) => isSnoozed(item, now));
  const mayAct = useMayAct();
  const claimed = claim === null ? 'none' : claim.by.id === person ? 'mine' : 'theirs';
  if (!mayAct) return null;
  return (
    <span className="flex gap-x-3 pointer-fine:opacity-0 transition-opacity focus-within:opacity-100 group-focus-within/row:opacity-100 group-hover/row:opacity-100 sm:gap-x-4">
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

/** Hides items for a while. */
function SnoozeMenu({ about, onSnooze }: { about: string; onSnooze: (until: number) => void }) {
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

const STRONG =
  'inline-flex min-h-6 items-center rounded-sm font-medium underline decoration-line-strong underline-offset-2 hover:text-accent';

/** Actions on all selected items. */
export function InboxBulk(props: {
  items: readonly InboxItem[];
  /** True if the card of an item is shown. */
  isUnfolded: (item: InboxItem) => boolean;
  onUnfold: (items: readonly InboxItem[]) => void;
  onMark: (mark: Mark) => void;
  onNone: () => void;
}) {
  const { items, isUnfolded, onUnfold, onMark, onNone } = props;
  const mayAct = useMayAct();
  const about = `${plural(items.length, 'item')} selected`;
  const permissions = items.filter((item) => item.kind === 'permission').filter(hasRequest);
  return (
    <section
      {...OVERLAY}
      aria-label={about}
      className="sticky bottom-0 z-10 -mx-2 flex flex-wrap items-baseline gap-x-5 gap-y-1 border-line-strong border-t bg-ground px-2 py-3 text-xs"
    >
      <span className="tabular font-medium">{about}</span>
      {mayAct ? (
        <>
          {permissions.length > 0 && <AllowThese items={permissions} isUnfolded={isUnfolded} onUnfold={onUnfold} />}
          <ActionButton about={about} label="Seen" onPress={() => onMark('seen')} />
          <ActionButton about={about} label="Claim" onPress={() => onMark('claimed')} />
          <SnoozeMenu about={about} onSnooze={(snoozedUntil) => onMark({ snoozedUntil })} />
        </>
      ) : (
        <span className="text-ink-2">You can view the inbox, but not change it.</span>
      )}
      <ActionButton about={about} label="Select none" onPress={onNone} />
    </section>
  );
}

/**
 * Allows several permissions with one press, once the whole input of each has been in sight, on its row or its card. Each
 * answer is for what was shown.
 */
function AllowThese(props: {
  items: readonly RequestedItem[];
  isUnfolded: (item: InboxItem) => boolean;
  onUnfold: (items: readonly InboxItem[]) => void;
}) {
  const { items, isUnfolded, onUnfold } = props;
  const allowable = useAllowable();
  const [allowed, setAllowed] = useState<ReadonlySet<string>>(new Set());
  // A permission whose answer failed can be allowed again.
  const open = items
    .map((item) => ({ item, id: item.id, digest: item.request.digest ?? '' }))
    .filter(({ digest }) => !allowed.has(digest) || allowable.has(digest));
  const these = open.length === 1 ? 'this one' : `these ${open.length.toLocaleString('en')}`;
  const folded = open.filter(({ item, digest }) => !allowable.has(digest) && !isUnfolded(item)).map(({ item }) => item);
  if (open.length === 0) return <span role="status">Allowed. Sending the answers…</span>;
  if (folded.length > 0) {
    return (
      <button type="button" onClick={() => onUnfold(folded)} className={STRONG}>
        Review {these}
      </button>
    );
  }
  const ready = open.filter(({ digest }) => allowable.has(digest));
  const left = open.length - ready.length;
  return (
    <>
      <SettledButton
        of={open.map(({ id, digest }) => `${id} ${digest}`).join('\n')}
        disabled={left > 0}
        onPress={() => {
          setAllowed(new Set([...allowed, ...ready.map(({ digest }) => digest)]));
          for (const { digest } of ready) allowable.get(digest)?.();
        }}
        className={clsx(STRONG, 'disabled:text-ink-3 aria-disabled:text-ink-3')}
      >
        Allow {these}
      </SettledButton>
      {left > 0 && (
        <span role="status" className="text-ink-2">
          Scroll through the last {left.toLocaleString('en')} to enable Allow.
        </span>
      )}
    </>
  );
}
