'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { clsx } from 'clsx';
import { type ReactNode, useEffect, useEffectEvent, useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { useFleet } from '@/components/live/use-fleet';
import { type CardKeys, SELECTION, useAnswerable, useCardKeys } from '@/components/requests/request-board';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { plural } from '@/components/ui/duration';
import { OVERLAY } from '@/components/ui/in-view';
import { useSettled } from '@/components/ui/misclick-guard';
import { ActionButton, type Mark, SnoozeMenu } from './item-actions';
import { refusesMessages } from './item-details';
import { hasRequest, type RequestedItem } from './item-request';
import { retryAll } from './retry-here';

/** Actions on all selected items. */
export function InboxBulk(props: {
  items: readonly InboxItem[];
  /** True if the card of an item is shown. */
  isUnfolded: (item: InboxItem) => boolean;
  onUnfold: (items: readonly InboxItem[]) => void;
  onMark: (mark: Mark) => void;
  onNone: () => void;
  notify: (words: string, isFailure: boolean) => void;
  /** Called when the bar disappears, perhaps with the focus. */
  onClosed: () => void;
}) {
  const { items, isUnfolded, onUnfold, onMark, onNone, notify, onClosed } = props;
  const close = useEffectEvent(onClosed);
  useEffect(() => () => close(), []);
  const mayAct = useMayAct();
  const about = `${plural(items.length, 'item')} selected`;
  const permissions = items.filter(({ kind }) => kind === 'permission').filter(hasRequest);
  const failed = [...new Set(items.flatMap(({ kind, sessionId }) => (kind === 'failure' ? (sessionId ?? []) : [])))];
  return (
    <section
      {...OVERLAY}
      aria-label={about}
      className="sticky bottom-0 z-10 -mx-2 flex flex-wrap items-center gap-x-5 gap-y-1 max-sm:gap-x-3 border-line-strong border-t bg-ground px-2 py-2.5 text-xs"
    >
      <span className="tabular font-medium">{about}</span>
      {mayAct ? (
        <>
          {permissions.length > 0 && <BulkAnswer items={permissions} isUnfolded={isUnfolded} onUnfold={onUnfold} />}
          {failed.length > 0 && <BulkRetry sessionIds={failed} notify={notify} />}
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

const BUTTON = 'min-h-7 rounded px-2.5 font-medium aria-disabled:cursor-default';
const PRIMARY = 'bg-ink text-ground hover:bg-ink-2';
const PLAIN = 'border border-line-strong hover:bg-raised';

function these(count: number): string {
  return count === 1 ? 'this one' : `these ${count.toLocaleString('en')}`;
}

/**
 * Allows or denies several permissions with one press. Those whose whole input is not on their row unfold first, and
 * Allow needs all of each input to have been in sight. Each answer is for what was shown.
 */
function BulkAnswer(props: {
  items: readonly RequestedItem[];
  isUnfolded: (item: InboxItem) => boolean;
  onUnfold: (items: readonly InboxItem[]) => void;
}) {
  const { items, isUnfolded, onUnfold } = props;
  const box = useRef<HTMLSpanElement>(null);
  const answerable = useAnswerable();
  const [given, setGiven] = useState<{ word: string; digests: ReadonlySet<string> }>({ word: '', digests: new Set() });
  // A permission whose answer failed can be answered again.
  const open = items
    .map((item) => ({ item, id: item.id, digest: item.request.digest ?? '' }))
    .filter(({ digest }) => !given.digests.has(digest) || answerable.has(digest));
  const folded = open
    .filter(({ item, digest }) => !answerable.has(digest) && !isUnfolded(item))
    .map(({ item }) => item);
  const isAnswerable = open.every(({ digest }) => answerable.has(digest));
  const unseen = open.filter(({ digest }) => answerable.get(digest)?.allow == null).length;
  const isReady = open.length > 0 && folded.length === 0;
  const subject = open.map(({ id, digest }) => `${id} ${digest}`).join('\n');
  const { settled, isIntended } = useSettled(box, isReady ? subject : null);
  const give = (key: keyof CardKeys) => {
    if (folded.length > 0) return onUnfold(folded);
    const answers = open.flatMap(({ digest }) => answerable.get(digest)?.[key] ?? []);
    if (answers.length < open.length || !isIntended()) return;
    const word = key === 'allow' ? 'Allowed' : 'Denied';
    setGiven({ word, digests: new Set([...given.digests, ...open.map(({ digest }) => digest)]) });
    for (const answer of answers) answer();
  };
  useCardKeys(open.length > 0 ? SELECTION : null, { allow: () => give('allow'), deny: () => give('deny') });
  if (open.length === 0) return <span role="status">{given.word}. Sending the answers…</span>;
  if (folded.length > 0) {
    return (
      <>
        <button type="button" onClick={() => onUnfold(folded)} className={clsx(BUTTON, PRIMARY)}>
          Review {these(open.length)}
        </button>
        <span className="text-ink-2 max-sm:basis-full">
          {folded.length === 1 ? '1 is' : `${folded.length.toLocaleString('en')} are`} not shown in full.
        </span>
      </>
    );
  }
  return (
    <span ref={box} className="flex flex-wrap items-center gap-2">
      <button
        type="button"
        aria-disabled={!settled || unseen > 0}
        aria-keyshortcuts="a"
        onClick={() => give('allow')}
        className={clsx(BUTTON, unseen > 0 ? 'bg-raised text-ink-3' : PRIMARY)}
      >
        Allow {these(open.length)}
      </button>
      <button
        type="button"
        aria-disabled={!settled || !isAnswerable}
        aria-keyshortcuts="d"
        onClick={() => give('deny')}
        className={clsx(BUTTON, isAnswerable ? PLAIN : 'border border-line text-ink-3')}
      >
        Deny {these(open.length)}
      </button>
      {unseen > 0 && (
        <span role="status" className="text-ink-2">
          Scroll through the last {plural(unseen, 'input')} to enable Allow.
        </span>
      )}
    </span>
  );
}

/** Sends the last message of each failed session that accepts one again, after a second press. */
export function BulkRetry(props: {
  sessionIds: readonly string[];
  /** Words before the first press. */
  label?: ReactNode;
  notify: (words: string, isFailure: boolean) => void;
}) {
  const accepting = useFleet((fleet) => JSON.stringify(props.sessionIds.filter((id) => !refusesMessages(fleet, id))));
  const sessionIds = JSON.parse(accepting) as string[];
  const { label = `Retry ${these(sessionIds.length)}`, notify } = props;
  const [isBusy, setBusy] = useState(false);
  const retry = async () => {
    setBusy(true);
    notify(...(await retryAll(sessionIds)));
    setBusy(false);
  };
  if (sessionIds.length === 0) {
    return props.label === undefined ? null : <span className="text-ink-3">They accept no messages</span>;
  }
  return (
    <ConfirmButton
      of={`retry ${sessionIds.join('\n')}`}
      disabled={isBusy}
      onPress={() => void retry()}
      className={clsx(BUTTON, PLAIN, 'no-underline!')}
      looks={['', 'border-ink']}
    >
      {(isPressed) =>
        isBusy ? 'Sending…' : isPressed ? `Press again to resend ${plural(sessionIds.length, 'message')}` : label
      }
    </ConfirmButton>
  );
}
