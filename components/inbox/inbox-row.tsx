'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxItemPath } from '@interlude/protocol/inbox-rules';
import { clsx } from 'clsx';
import { ChevronDown } from 'lucide';
import { type FocusEvent, memo, useLayoutEffect, useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { useFleet } from '@/components/live/use-fleet';
import { isUnnamed } from '@/components/obligations/use-obligations';
import { answerByKey, ownTitle } from '@/components/requests/request-answer';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { Name, Quoted, Words } from '@/components/ui/name';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { toPlainText } from '@/components/ui/plain-text';
import { isRange } from '@/components/ui/use-selection';
import { inQuotes, nameText } from '@/components/ui/verbatim';
import { foldEqual, itemTitle, KIND_GLYPH, ownerTitle, REASON_WORD } from './inbox-labels';
import { ActionButton, ItemActions, type Mark } from './item-actions';
import { ItemDetails, useUnfoldLabel } from './item-details';
import { DoneWord, hasRequest, type RequestedItem, useAnswer } from './item-request';
import { itemName, RequestLine } from './request-line';
import { RowAnswer } from './row-answer';
import { focusAfter } from './use-inbox-keys';
import type { FailureFold, InboxOwner } from './use-inbox-owners';

/** Callbacks of a row. Stable, so rows stay memoized. */
export interface RowActions {
  select: (id: string, isSelected: boolean, isRange: boolean) => void;
  unfold: (id: string, isUnfolded: boolean) => void;
  mark: (items: readonly InboxItem[], mark: Mark) => void;
  /** Reports an action that may have removed an item. */
  notify: (words: string, isFailure?: boolean) => void;
}

/** With room for the focus ring. */
const ROW_LOOK = 'group/row group/answer -mx-2 list-row border-line border-b px-2 text-row -outline-offset-2';

/** Holds a row's checkbox. On a phone, its target reaches the edge, and the text begins behind it. */
const SELECT = '-m-1.5 flex p-1.5 pt-2 max-sm:pointer-coarse:mr-0 max-sm:pointer-coarse:-ml-4';

/** A session or an agent: its most urgent item, title, age and actions. Unfolds to all of its items. */
export const InboxRow = memo(function InboxRow(props: {
  owner: InboxOwner;
  person: string | null;
  isSelected: boolean;
  isUnfolded: boolean;
  /** True below the row that folds it. */
  isNested: boolean;
  /** True if the pane beside the list shows the session. */
  isPreviewed: boolean;
  requestCode: CodeOnDemand<{ item: RequestedItem }>;
  actions: RowActions;
}) {
  const { owner, person, isSelected, isUnfolded, isNested, isPreviewed, requestCode, actions } = props;
  const { id, lead, open, needsYou } = owner;
  const { kind } = lead;
  const isDone = open.length === 0;
  const title = useFleet(({ sessions }) => ownerTitle(lead, sessions.get(lead.sessionId ?? '')));
  // The row that folds this one names the failure.
  const about = (isNested && title) || itemTitle(lead);
  const name = isNested && title ? nameText(`${inQuotes(title)}, ${lead.agentId}`) : itemName(lead);
  const count = foldEqual(open)[0]?.count ?? 1;
  const { isSent } = useAnswer(lead);
  // A further request follows in the same row.
  const isAnsweredHere = isSent && open.filter(hasRequest).length === 1;
  const { row, handlers } = useRowFocus(isDone, isAnsweredHere);
  const line = useRef<HTMLSpanElement>(null);
  const [isSeen, setSeen] = useState<boolean | null>(null);
  const mayAct = useMayAct();
  const unfolds = useUnfoldLabel(open);
  const isAnswered = !isDone && mayAct && kind === 'permission' && hasRequest(lead);
  return (
    <li
      ref={row}
      {...handlers}
      onKeyDown={(event) => answerByKey(event, row.current?.querySelector('form[data-question]'))}
      tabIndex={-1}
      data-inbox-row={id}
      data-inbox-session={lead.sessionId ?? undefined}
      aria-current={isPreviewed || undefined}
      data-digest={lead.request?.digest ?? undefined}
      data-done={isDone || isAnsweredHere || undefined}
      className={clsx(
        ROW_LOOK,
        isNested && 'pl-9! max-sm:pl-6!',
        !needsYou && 'text-ink-3',
        isPreviewed && 'bg-raised',
        // rows out of sight skip layout, except unfolded ones
        !isUnfolded &&
          '[contain-intrinsic-size:auto_160px] sm:[contain-intrinsic-size:auto_56px] [content-visibility:auto]',
      )}
    >
      <div className="flex items-start gap-3 max-sm:pointer-coarse:gap-0">
        <label className={SELECT}>
          <input
            type="checkbox"
            aria-label={`Select ${name}`}
            checked={isSelected && !isDone}
            disabled={isDone}
            onChange={(event) => actions.select(id, event.target.checked, isRange(event))}
            className="accent-ink"
          />
        </label>
        <div className="min-w-0 flex-1">
          <div className="flex items-baseline gap-3">
            <Link
              href={inboxItemPath(lead)}
              className="-mt-1 flex min-w-0 flex-1 items-baseline gap-2 rounded-sm pt-1 hover:bg-raised/60 max-sm:relative max-sm:indent-5"
            >
              <Glyph
                name={KIND_GLYPH[kind]}
                className="sm:relative sm:top-[1.5px] max-sm:absolute max-sm:top-2 max-sm:left-0"
              />
              {hasRequest(lead) ? (
                <RequestLine item={lead} line={line} onSeen={setSeen} />
              ) : (
                <span
                  dir="auto"
                  className={clsx(
                    'wrap-break-word min-w-0 flex-1 font-medium',
                    isNested ? 'line-clamp-1' : 'line-clamp-2',
                  )}
                >
                  <Words text={about} />
                  {count > 1 && `, ${count.toLocaleString('en')} times`}
                </span>
              )}
            </Link>
            <Ago at={lead.occurredAt ?? lead.since} className="tabular whitespace-nowrap text-2xs text-ink-3" />
          </div>
          <div className="flex flex-wrap items-center gap-x-5 gap-y-1 text-xs sm:pl-5">
            <span className={OWNER_PLACE}>
              <RowOwner owner={owner} title={isNested || isTitle(lead, title) ? null : title} person={person} />
              {!isDone && (
                // on touch screens, a folded request hides its marks
                <span className={isAnswered && !isUnfolded ? 'contents pointer-coarse:hidden' : 'contents'}>
                  <ItemActions item={lead} about={name} person={person} onMark={(made) => actions.mark(open, made)} />
                </span>
              )}
            </span>
            <span className="flex min-h-7 items-center">
              {isDone && <span className="text-ink-2">{hasRequest(lead) ? <DoneWord item={lead} /> : 'Done'}</span>}
              {isAnswered && !isUnfolded ? (
                <RowAnswer item={lead} isSeen={isSeen} onUnfold={() => actions.unfold(id, true)} />
              ) : (
                unfolds !== null && (
                  <ActionButton
                    about={name}
                    label={isUnfolded ? 'Collapse' : unfolds}
                    isMain={!isUnfolded && mayAct}
                    isExpanded={isUnfolded}
                    onPress={() => actions.unfold(id, !isUnfolded)}
                  />
                )
              )}
            </span>
          </div>
        </div>
      </div>
      {isUnfolded && unfolds !== null && <ItemDetails items={open} requestCode={requestCode} notify={actions.notify} />}
    </li>
  );
});

/** Sessions with the same failure. Their own rows follow while it is unfolded. */
export function FoldRow(props: {
  fold: FailureFold;
  person: string | null;
  selected: ReadonlySet<string>;
  isUnfolded: boolean;
  actions: RowActions;
}) {
  const { fold, person, selected, isUnfolded, actions } = props;
  const { id, lead, open, needsYou, members } = fold;
  const failed = members.filter(({ open }) => open.length > 0);
  const isDone = failed.length === 0;
  const title = itemTitle(lead);
  const about = nameText(title);
  const count = failed.filter(({ id }) => selected.has(id)).length;
  const { row, handlers } = useRowFocus(isDone);
  const mayAct = useMayAct();
  usePreload(retryCode);
  return (
    <li
      ref={row}
      {...handlers}
      tabIndex={-1}
      data-inbox-row={id}
      data-inbox-session={lead.sessionId ?? undefined}
      data-done={isDone || undefined}
      className={clsx(ROW_LOOK, !needsYou && 'text-ink-3')}
    >
      <div className="flex items-start gap-3 max-sm:pointer-coarse:gap-0">
        <label className={SELECT}>
          <input
            ref={(field) => {
              if (field !== null) field.indeterminate = count > 0 && count < failed.length;
            }}
            type="checkbox"
            aria-label={`Select all with ${about}`}
            checked={!isDone && count === failed.length}
            disabled={isDone}
            onChange={(event) => actions.select(id, event.target.checked, isRange(event))}
            className="accent-ink"
          />
        </label>
        <div className="min-w-0 flex-1">
          <div className="flex items-baseline gap-2">
            <Glyph name={KIND_GLYPH[lead.kind]} className="relative top-[1.5px]" />
            <span className="flex min-w-0 flex-1">
              <button
                type="button"
                aria-expanded={isUnfolded}
                onClick={() => actions.unfold(id, !isUnfolded)}
                className="hit flex min-w-0 flex-wrap items-center gap-x-2 text-left hover:text-accent"
              >
                <span dir="auto" className="wrap-break-word line-clamp-2 min-w-0 font-medium">
                  <Words text={title} />
                </span>
                <span className="tabular flex items-center gap-1.5 whitespace-nowrap text-ink-3">
                  {!isDone && plural(failed.length, 'session')}
                  <Icon of={ChevronDown} size={14} className={clsx('shrink-0', isUnfolded && 'rotate-180')} />
                </span>
              </button>
            </span>
            <Ago at={lead.occurredAt ?? lead.since} className="tabular whitespace-nowrap text-2xs text-ink-3" />
          </div>
          <div className="flex flex-wrap items-center gap-x-5 gap-y-1 text-xs sm:pl-5">
            <span className={OWNER_PLACE}>
              <span className="min-w-0 flex-[1_1_16rem] truncate text-ink-3">
                <Name text={[...new Set(members.map(({ lead }) => lead.agentId))].join(', ')} max={200} />
              </span>
              {!isDone && (
                <ItemActions item={lead} about={about} person={person} onMark={(made) => actions.mark(open, made)} />
              )}
            </span>
            <span className="flex min-h-7 items-center">
              {isDone && <span className="text-ink-2">Done</span>}
              {!isDone && mayAct && (
                <OnDemand
                  code={retryCode}
                  name="The retry button"
                  props={{
                    sessionIds: failed.flatMap(({ lead }) => lead.sessionId ?? []),
                    label: (
                      <>
                        Retry all<span className="sr-only"> with {about}</span>
                      </>
                    ),
                    notify: actions.notify,
                  }}
                />
              )}
            </span>
          </div>
        </div>
      </div>
    </li>
  );
}

const retryCode = new CodeOnDemand(async () => (await import('./inbox-bulk')).BulkRetry);

/** Holds the owner. Its actions overlay the end where a mouse is used. */
const OWNER_PLACE =
  'contents sm:pointer-fine:relative sm:pointer-fine:flex sm:pointer-fine:min-w-0 sm:pointer-fine:flex-[1_1_16rem] sm:pointer-fine:items-center';

/** True if the message that waits for a reply is the title of its session. */
function isTitle({ kind, title: message }: InboxItem, title: string | null): boolean {
  return kind === 'overdue-reply' && title !== null && ownTitle(title, null, [toPlainText(message ?? '')]) === null;
}

/** The row's session and agent, further reasons, and the person who has claimed it. */
function RowOwner({ owner, title, person }: { owner: InboxOwner; title: string | null; person: string | null }) {
  const { lead, open } = owner;
  const { agentId, sessionId, from, claim } = lead;
  const [more, ...others] = foldEqual(open).slice(1);
  return (
    <span className="flex min-w-0 flex-[1_1_16rem] items-baseline gap-x-2 whitespace-nowrap text-ink-3 max-sm:flex-wrap">
      {title !== null && sessionId !== null && (
        <Link
          href={`/sessions/${encodeURIComponent(sessionId)}`}
          className="hit-line min-w-0 rounded-sm text-ink-2 hover:text-accent"
        >
          <span dir="auto" className="block truncate max-sm:line-clamp-2 max-sm:whitespace-normal">
            <Words text={title} />
          </span>
        </Link>
      )}
      <span className="min-w-[6rem] shrink-0 truncate max-sm:max-w-full sm:max-w-[45%]">
        <Name text={agentId} />
      </span>
      {from !== null && (
        <span className="min-w-0 truncate">
          {isUnnamed(from) ? (
            person === 'local' ? (
              'You are'
            ) : (
              'A person is'
            )
          ) : (
            <>
              <Quoted text={from.id} /> is
            </>
          )}{' '}
          waiting for a reply
        </span>
      )}
      {more !== undefined && (
        <span className="tabular shrink-0 text-ink-2">
          {others.length === 0 ? `also ${REASON_WORD[more.item.kind]}` : plural(others.length + 1, 'more reason')}
        </span>
      )}
      {claim !== null && (
        <span className="min-w-0 truncate text-ink-2">
          {claim.by.id === person ? (
            'Claimed by you'
          ) : (
            <>
              Claimed by <Name text={claim.by.name} />
            </>
          )}
        </span>
      )}
    </span>
  );
}

/**
 * Keeps the focus in the row when its focused button disappears, and moves it to the next row once this one is done or
 * answered.
 */
function useRowFocus(isDone: boolean, isAnswered = false) {
  const row = useRef<HTMLLIElement>(null);
  const focused = useRef<Element | null>(null);
  const isOver = isDone || isAnswered;
  const wasOver = useRef(isOver);
  useLayoutEffect(() => {
    const isNewlyOver = isOver && !wasOver.current;
    wasOver.current = isOver;
    const before = focused.current;
    if (before !== null && document.activeElement === document.body) row.current?.focus();
    // The next keys of a reader who was typing here are no shortcuts.
    if (before?.matches('textarea, [type=text]') === false && isNewlyOver && row.current !== null) {
      focusAfter(row.current, isAnswered);
    }
  });
  const handlers = {
    onFocus: ({ target }: FocusEvent) => {
      focused.current = target;
    },
    // Removing a focused element fires no blur event.
    onBlur: () => {
      focused.current = null;
    },
  };
  return { row, handlers };
}
