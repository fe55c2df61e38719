'use client';

import { clsx } from 'clsx';
import Link from 'next/link';
import { useFleet } from '@/components/live/use-fleet';
import { sessionTitle } from '@/components/sessions/session-words';
import { Ago } from '@/components/ui/clock';
import { Glyph } from '@/components/ui/glyph';
import { Name, Words } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import type { InboxItem } from '@/lib/protocol/inbox';
import { itemTitle, KIND_GLYPH, placeOf } from './inbox-words';
import { ItemActions, type Mark } from './item-actions';

/** One thing that needs a person: what it is, whose it is, since when, who takes care of it, and what can be done. */
export function InboxRow(props: {
  item: InboxItem;
  person: string;
  isSelected: boolean;
  onSelect: (isSelected: boolean) => void;
  onMark: (mark: Mark) => void;
}) {
  const { item, person, isSelected, onSelect, onMark } = props;
  const { agentId, sessionId, claim, seenAt, kind } = item;
  const session = useFleet(({ sessions }) => (sessionId === null ? undefined : sessions.get(sessionId)));
  const title = itemTitle(item);
  return (
    <li className={clsx('flex items-start gap-3 border-line border-b py-2', seenAt !== null && 'text-ink-3')}>
      <label className="-m-1.5 flex p-1.5 pt-2">
        <input
          type="checkbox"
          aria-label={`Select ${nameText(title)}`}
          checked={isSelected}
          onChange={(event) => onSelect(event.target.checked)}
          className="accent-ink"
        />
      </label>
      <div className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-5 gap-y-1">
        <Link href={placeOf(item)} className="min-w-0 flex-[1_1_16rem] -outline-offset-2 hover:bg-raised/60">
          <span className="flex items-baseline gap-2">
            <Glyph name={KIND_GLYPH[kind]} className="relative top-[1.5px]" />
            <span dir="auto" className="wrap-break-word min-w-0 flex-1 font-medium">
              <Words text={title} />
            </span>
          </span>
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
            {item.from !== null && (
              <>
                {' · '}
                <Name text={item.from.id} /> waits
              </>
            )}
          </span>
        </Link>
        <span className="flex flex-wrap items-baseline gap-x-4 gap-y-1 pl-5 text-xs">
          {claim !== null && (
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
          <ItemActions item={item} person={person} onMark={onMark} />
          <Ago at={item.since} className="tabular min-w-10 whitespace-nowrap text-right text-2xs text-ink-3" />
        </span>
      </div>
    </li>
  );
}
