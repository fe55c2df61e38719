'use client';

import type { Sending } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxItemPath } from '@interlude/protocol/inbox-rules';
import type { InboxKind } from '@interlude/protocol/vocabulary';
import { clsx } from 'clsx';
import { memo } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { Ago } from '@/components/ui/clock';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name, Words } from '@/components/ui/name';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { nameText, quoted } from '@/components/ui/verbatim';
import { itemTitle, KIND_GLYPH } from './inbox-words';
import { ItemActions, type Mark } from './item-actions';
import { ItemOwner } from './item-owner';
import { asksSomething, type RequestedItem } from './use-request';
import { useRowFocus } from './use-row-focus';

const owedCode = new CodeOnDemand(async () => (await import('./owed-here')).OwedHere);
const wakeCode = new CodeOnDemand(async () => (await import('@/components/tasks/wake-here')).WakeHere);
const retryCode = new CodeOnDemand(async () => (await import('./retry-here')).RetryHere);

/** What a row asks of its page. The same object as long as the page is there. */
export interface RowActs {
  select: (id: string, isSelected: boolean) => void;
  unfold: (id: string, isUnfolded: boolean) => void;
  mark: (item: InboxItem, mark: Mark) => void;
  /** Something was done here that takes the item away. */
  say: (words: string) => void;
}

/** One thing that needs a person: what it is, whose it is, since when, who takes care of it, and what can be done. */
export const InboxRow = memo(function InboxRow(props: {
  item: InboxItem;
  person: string | null;
  isSelected: boolean;
  isUnfolded: boolean;
  requestCode: CodeOnDemand<{ item: RequestedItem }>;
  acts: RowActs;
}) {
  const { item, person, isSelected, isUnfolded, requestCode, acts } = props;
  const { sessionId, claim, seenAt, doneAt, kind } = item;
  const isDone = doneAt !== null;
  const title = itemTitle(item);
  const { row, handlers } = useRowFocus();
  const mayAct = useMayAct();
  const unfolds = unfoldingOf(item, mayAct);
  const onSent = ({ reason }: Sending) => acts.say(`Sent to ${quoted(item.agentId)}. ${reason ?? ''}`);
  return (
    <li
      ref={row}
      {...handlers}
      tabIndex={-1}
      data-inbox-row={item.id}
      className={clsx(
        // room for the frame of the focus, which must not cut through what stands at the edges
        'group/answer -mx-2 border-line border-b px-2 py-2 -outline-offset-2',
        (seenAt !== null || isDone) && 'text-ink-3',
        // what is out of sight is not laid out; what is read there is
        !isUnfolded && '[contain-intrinsic-size:auto_56px] [content-visibility:auto]',
      )}
    >
      <div className="flex items-start gap-3">
        <label className="-m-1.5 flex p-1.5 pt-2">
          <input
            type="checkbox"
            aria-label={`Select ${nameText(title)}`}
            checked={isSelected && !isDone}
            disabled={isDone}
            onChange={(event) => acts.select(item.id, event.target.checked)}
            className="accent-ink"
          />
        </label>
        <div className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-5 gap-y-1">
          <Link href={inboxItemPath(item)} className="min-w-0 flex-[1_1_16rem] rounded-sm hover:bg-raised/60">
            <span className="flex items-baseline gap-2">
              <Glyph name={KIND_GLYPH[kind]} className="relative top-[1.5px]" />
              <span dir="auto" className="wrap-break-word min-w-0 flex-1 font-medium">
                <Words text={title} />
              </span>
            </span>
            <ItemOwner item={item} />
          </Link>
          <span className="flex flex-wrap items-baseline gap-x-3 gap-y-1 pl-5 text-xs sm:gap-x-4">
            {isDone && <span className="text-ink-2">Done</span>}
            {!isDone && claim !== null && (
              <span className="text-ink-2">
                {claim.by.id === person ? (
                  'You have this'
                ) : (
                  <>
                    <Name text={claim.by.name} /> has this
                  </>
                )}
              </span>
            )}
            {!isDone && (
              <ItemActions
                item={item}
                person={person}
                unfold={
                  unfolds === null ? null : { label: unfolds, isUnfolded, onUnfold: (is) => acts.unfold(item.id, is) }
                }
                onMark={(made) => acts.mark(item, made)}
              />
            )}
            <Ago at={item.since} className="tabular whitespace-nowrap text-right sm:min-w-10 text-2xs text-ink-3" />
          </span>
        </div>
      </div>
      {isUnfolded && unfolds !== null && (
        <div className="pl-7 text-ink">
          {asksSomething(item) ? (
            <OnDemand code={requestCode} name="What it asks" props={{ item }} />
          ) : kind === 'overdue-reply' ? (
            <OnDemand
              code={owedCode}
              name="The reply"
              props={{
                sessionId: sessionId ?? '',
                messageId: item.messageId ?? '',
                updatedPosition: item.updatedPosition,
              }}
            />
          ) : item.task !== undefined ? (
            <OnDemand
              code={wakeCode}
              name="The result"
              props={{ agentId: item.agentId, sessionId: sessionId ?? '', task: item.task, onSent }}
            />
          ) : (
            <OnDemand code={retryCode} name="Retrying" props={{ sessionId: sessionId ?? '', onSent }} />
          )}
        </div>
      )}
    </li>
  );
});

/** What can be done about an item in its row, besides marking it; null if nothing can. */
function unfoldingOf(item: InboxItem, mayAct: boolean): string | null {
  if (asksSomething(item)) return mayAct ? 'Answer' : 'Show';
  if (item.sessionId === null || !mayAct) return null;
  return UNFOLDING[item.kind] ?? null;
}

const UNFOLDING: Partial<Record<InboxKind, string>> = {
  failure: 'Retry',
  undelivered: 'Wake the agent',
  'overdue-reply': 'Settle',
};
