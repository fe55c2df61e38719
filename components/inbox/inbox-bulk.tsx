'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { clsx } from 'clsx';
import { useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { useAllowable } from '@/components/requests/request-board';
import { plural } from '@/components/ui/duration';
import { OVERLAY } from '@/components/ui/in-view';
import { SettledButton } from '@/components/ui/misclick-guard';
import { ActionButton, type Mark, SnoozeMenu } from './item-actions';
import { asksSomething, type RequestedItem } from './use-request';

const STRONG =
  'inline-flex min-h-6 items-center rounded-sm font-medium underline decoration-line-strong underline-offset-2 hover:text-accent';

/** What can be made of all selected items at once. */
export function InboxBulk(props: {
  items: readonly InboxItem[];
  isUnfolded: (id: string) => boolean;
  onUnfold: (ids: string[]) => void;
  onMark: (mark: Mark) => void;
  onNone: () => void;
}) {
  const { items, isUnfolded, onUnfold, onMark, onNone } = props;
  const mayAct = useMayAct();
  const about = `${plural(items.length, 'item')} selected`;
  const asking = items.filter((item) => item.kind === 'permission').filter(asksSomething);
  return (
    <section
      {...OVERLAY}
      aria-label={about}
      className="sticky bottom-0 z-10 -mx-2 flex flex-wrap items-baseline gap-x-5 gap-y-1 border-line-strong border-t bg-ground px-2 py-3 text-xs"
    >
      <span className="tabular font-medium">{about}</span>
      {mayAct ? (
        <>
          {asking.length > 0 && <AllowThese items={asking} isUnfolded={isUnfolded} onUnfold={onUnfold} />}
          <ActionButton about={about} label="Seen" onPress={() => onMark('seen')} />
          <ActionButton about={about} label="Claim" onPress={() => onMark('claimed')} />
          <SnoozeMenu about={about} onSnooze={(snoozedUntil) => onMark({ snoozedUntil })} />
        </>
      ) : (
        <span className="text-ink-2">You can look here, and change nothing.</span>
      )}
      <ActionButton about={about} label="Select none" onPress={onNone} />
    </section>
  );
}

/**
 * Allows several permissions at one press, once each of them stands open and was seen to its end: each answer is for
 * what its own card shows.
 */
function AllowThese(props: {
  items: readonly RequestedItem[];
  isUnfolded: (id: string) => boolean;
  onUnfold: (ids: string[]) => void;
}) {
  const { items, isUnfolded, onUnfold } = props;
  const allowable = useAllowable();
  const [given, setGiven] = useState<ReadonlySet<string>>(new Set());
  // One whose answer did not arrive can be allowed again, and says so.
  const open = items
    .map(({ id, request: { digest } }) => ({ id, digest: digest ?? '' }))
    .filter(({ digest }) => !given.has(digest) || allowable.has(digest));
  const these = open.length === 1 ? 'this one' : `these ${open.length.toLocaleString('en')}`;
  const folded = open.filter(({ id }) => !isUnfolded(id));
  if (open.length === 0) return <span role="status">Allowed, on their way to the agents</span>;
  if (folded.length > 0) {
    return (
      <button type="button" onClick={() => onUnfold(folded.map(({ id }) => id))} className={STRONG}>
        Show what {open.length === 1 ? 'this one asks' : `${these} ask`}
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
          setGiven(new Set([...given, ...ready.map(({ digest }) => digest)]));
          for (const { digest } of ready) allowable.get(digest)?.();
        }}
        className={clsx(STRONG, 'disabled:text-ink-3 aria-disabled:text-ink-3')}
      >
        Allow {these}
      </SettledButton>
      {left > 0 && (
        <span role="status" className="text-ink-2">
          {`${left.toLocaleString('en')} of them can’t be allowed yet: all of what each one asks must be seen first.`}
        </span>
      )}
    </>
  );
}
