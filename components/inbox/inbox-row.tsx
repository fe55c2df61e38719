'use client';

import type { Sending } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxItemPath } from '@interlude/protocol/inbox-rules';
import type { InboxKind } from '@interlude/protocol/vocabulary';
import { clsx } from 'clsx';
import { memo, useLayoutEffect, useRef } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { useFleet } from '@/components/live/use-fleet';
import { sessionTitle } from '@/components/sessions/session-labels';
import { Ago } from '@/components/ui/clock';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name, Quoted, Words } from '@/components/ui/name';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { nameText, quoted } from '@/components/ui/verbatim';
import { itemTitle, KIND_GLYPH } from './inbox-labels';
import { ItemActions, type Mark } from './item-actions';
import { hasRequest, type RequestedItem } from './item-request';

const obligationCode = new CodeOnDemand(async () => (await import('./retry-here')).ObligationHere);
const wakeCode = new CodeOnDemand(async () => (await import('@/components/tasks/wake-here')).WakeHere);
const retryCode = new CodeOnDemand(async () => (await import('./retry-here')).RetryHere);

/** Callbacks of a row. Stable, so rows stay memoized. */
export interface RowActions {
  select: (id: string, isSelected: boolean) => void;
  unfold: (id: string, isUnfolded: boolean) => void;
  mark: (item: InboxItem, mark: Mark) => void;
  /** Confirms an action that removed an item. */
  notify: (words: string) => void;
}

/** An item: its title, agent, age, claim and actions. */
export const InboxRow = memo(function InboxRow(props: {
  item: InboxItem;
  person: string | null;
  isSelected: boolean;
  isUnfolded: boolean;
  requestCode: CodeOnDemand<{ item: RequestedItem }>;
  actions: RowActions;
}) {
  const { item, person, isSelected, isUnfolded, requestCode, actions } = props;
  const { sessionId, claim, seenAt, doneAt, kind } = item;
  const isDone = doneAt !== null;
  const title = itemTitle(item);
  const { row, handlers } = useRowFocus();
  const mayAct = useMayAct();
  const unfolds = unfoldLabel(item, mayAct);
  const onSent = ({ reason }: Sending) => actions.notify(`Sent to ${quoted(item.agentId)}. ${reason ?? ''}`);
  return (
    <li
      ref={row}
      {...handlers}
      tabIndex={-1}
      data-inbox-row={item.id}
      className={clsx(
        // room for the focus ring
        'group/answer -mx-2 border-line border-b px-2 py-2 -outline-offset-2',
        (seenAt !== null || isDone) && 'text-ink-3',
        // rows out of sight skip layout, except unfolded ones
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
            onChange={(event) => actions.select(item.id, event.target.checked)}
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
                  'Claimed by you'
                ) : (
                  <>
                    Claimed by <Name text={claim.by.name} />
                  </>
                )}
              </span>
            )}
            {!isDone && (
              <ItemActions
                item={item}
                person={person}
                unfold={
                  unfolds === null
                    ? null
                    : { label: unfolds, isUnfolded, onUnfold: (is) => actions.unfold(item.id, is) }
                }
                onMark={(made) => actions.mark(item, made)}
              />
            )}
            <Ago at={item.since} className="tabular whitespace-nowrap text-right sm:min-w-10 text-2xs text-ink-3" />
          </span>
        </div>
      </div>
      {isUnfolded && unfolds !== null && (
        <div className="pl-7 text-ink">
          {hasRequest(item) ? (
            <OnDemand code={requestCode} name="The request" props={{ item }} />
          ) : kind === 'overdue-reply' ? (
            <OnDemand
              code={obligationCode}
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

/** Label of the action that unfolds an item; null if it has none. */
function unfoldLabel(item: InboxItem, mayAct: boolean): string | null {
  if (hasRequest(item)) return mayAct ? 'Answer' : 'Show';
  if (item.sessionId === null || !mayAct) return null;
  return UNFOLD_LABEL[item.kind] ?? null;
}

const UNFOLD_LABEL: Partial<Record<InboxKind, string>> = {
  failure: 'Retry',
  undelivered: 'Wake the agent',
  'overdue-reply': 'Settle',
};

/** The item's agent and session. */
function ItemOwner({ item: { agentId, sessionId, from } }: { item: InboxItem }) {
  const session = useFleet(({ sessions }) => (sessionId === null ? undefined : sessions.get(sessionId)));
  return (
    <span className="wrap-break-word block pl-5 text-ink-3 text-xs">
      <Name text={agentId} />
      {sessionId !== null && (
        <>
          {' · '}
          <bdi>
            <Words text={sessionTitle(session ?? { id: sessionId, title: null })} />
          </bdi>
        </>
      )}
      {from !== null && (
        <>
          {' · '}
          <Quoted text={from.id} /> is waiting
        </>
      )}
    </span>
  );
}

/** Keeps the focus in the row when its focused button disappears. */
function useRowFocus() {
  const row = useRef<HTMLLIElement>(null);
  const hasFocus = useRef(false);
  useLayoutEffect(() => {
    if (hasFocus.current && document.activeElement === document.body) row.current?.focus();
  });
  const handlers = {
    onFocus: () => {
      hasFocus.current = true;
    },
    // Removing a focused element fires no blur event.
    onBlur: () => {
      hasFocus.current = false;
    },
  };
  return { row, handlers };
}
