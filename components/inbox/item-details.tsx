'use client';

import type { Sending } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxItemPath } from '@interlude/protocol/inbox-rules';
import { sendingTo } from '@interlude/protocol/sending';
import type { InboxKind } from '@interlude/protocol/vocabulary';
import { useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import type { FleetStore } from '@/components/live/fleet-store';
import { useFleet } from '@/components/live/use-fleet';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Words } from '@/components/ui/name';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { quoted } from '@/components/ui/verbatim';
import { foldEqual, itemTitle, KIND_GLYPH } from './inbox-labels';
import { hasRequest, type RequestedItem } from './item-request';

const obligationCode = new CodeOnDemand(async () => (await import('./retry-here')).ObligationHere);
const wakeCode = new CodeOnDemand(async () => (await import('@/components/tasks/wake-here')).WakeHere);
const retryCode = new CodeOnDemand(async () => (await import('./retry-here')).RetryHere);

/** Items shown at first. */
const FIRST = 5;

interface DetailsProps {
  requestCode: CodeOnDemand<{ item: RequestedItem }>;
  notify: (words: string) => void;
}

/** All items of a row, each with what a person can do about it. */
export function ItemDetails({ items, ...props }: DetailsProps & { items: readonly InboxItem[] }) {
  const [count, setCount] = useState(FIRST);
  const folded = foldEqual(items);
  if (folded.length === 1) return <ItemDetail item={items[0] as InboxItem} {...props} />;
  return (
    <ul className="pl-7">
      {folded.slice(0, count).map(({ item, count }) => (
        <li key={item.id} className="pt-2 text-xs">
          {!hasRequest(item) && (
            <Link href={inboxItemPath(item)} className="flex items-baseline gap-2 text-ink-2 hover:text-ink">
              <Glyph name={KIND_GLYPH[item.kind]} className="relative top-[1.5px]" />
              <span dir="auto" className="wrap-break-word min-w-0 flex-1">
                <Words text={itemTitle(item)} />
                {count > 1 && `, ${count.toLocaleString('en')} times`}
              </span>
            </Link>
          )}
          <ItemDetail item={item} {...props} isNested />
        </li>
      ))}
      {folded.length > count && (
        <li className="pt-2 text-xs">
          <button type="button" onClick={() => setCount(folded.length)} className="underline hover:text-ink">
            Show {(folded.length - count).toLocaleString('en')} more
          </button>
        </li>
      )}
    </ul>
  );
}

function ItemDetail(props: DetailsProps & { item: InboxItem; isNested?: boolean }) {
  const { item, requestCode, notify, isNested = false } = props;
  const { agentId, kind, messageId, task, updatedPosition } = item;
  const sessionId = item.sessionId ?? '';
  if (useUnfoldLabel([item]) === null) return null;
  const onSent = ({ reason }: Sending) => notify(`Sent to ${quoted(agentId)}. ${reason ?? ''}`);
  return (
    <div className={isNested ? 'text-ink' : 'pl-7 text-ink'}>
      {hasRequest(item) ? (
        <OnDemand code={requestCode} name="The request" props={{ item }} />
      ) : kind === 'overdue-reply' ? (
        <OnDemand
          code={obligationCode}
          name="The reply"
          props={{ sessionId, messageId: messageId ?? '', updatedPosition }}
        />
      ) : task !== undefined ? (
        <OnDemand code={wakeCode} name="The result" props={{ agentId, sessionId, task, onSent }} />
      ) : (
        <OnDemand code={retryCode} name="The retry form" props={{ sessionId, onSent }} />
      )}
    </div>
  );
}

/** Label of the action that unfolds items, most urgent first; null if there is nothing to unfold. */
export function useUnfoldLabel([item, ...more]: readonly InboxItem[]): string | null {
  const mayAct = useMayAct();
  const isRefused = useFleet((fleet) => item?.kind === 'failure' && refusesMessages(fleet, item.sessionId ?? ''));
  if (item === undefined) return null;
  if (hasRequest(item)) return !mayAct ? 'Show' : item.kind === 'permission' ? 'Review' : 'Answer';
  const label = item.sessionId === null || !mayAct || isRefused ? undefined : UNFOLD_LABEL[item.kind];
  return label ?? (more.length > 0 ? 'Show' : null);
}

/** True if the session is known to accept no message, such as after its process has ended. */
export function refusesMessages({ sessions, agents }: FleetStore, sessionId: string): boolean {
  const session = sessions.get(sessionId);
  return session !== undefined && sendingTo(session, agents.get(session.agentId) ?? null).kind === 'refused';
}

const UNFOLD_LABEL: Partial<Record<InboxKind, string>> = {
  failure: 'Retry',
  undelivered: 'Wake the agent',
  'overdue-reply': 'Review reply',
};
