'use client';

import type { ClearedBy, Obligation, SessionSummary } from '@interlude/protocol/read-models';
import type { RefObject } from 'react';
import { Ago } from '@/components/ui/clock';
import { Phrase, Quoted, Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';
import { ButtonPopover } from '@/components/ui/popover';
import { Term } from '@/components/ui/term';
import { AcceptReply, WaiveReply } from './settle-reply';
import { isUnnamed, useOpenObligations, useSessionObligations } from './use-obligations';

/** Pending and recently settled replies of a session. */
export function ObligationsPopover(props: {
  session: SessionSummary;
  button: RefObject<HTMLElement | null>;
  onClose: () => void;
}) {
  const { session, button, onClose } = props;
  return (
    <ButtonPopover label="Pending replies" button={button} onClose={onClose}>
      <h2 className="px-3 py-1 text-2xs text-ink-3">
        <Term of="pending reply">Pending replies</Term>
      </h2>
      <OpenObligations session={session} onLeave={onClose} />
      <SettledList session={session} onLeave={onClose} />
    </ButtonPopover>
  );
}

function OpenObligations({ session, onLeave }: { session: SessionSummary; onLeave: () => void }) {
  const { obligations, query } = useOpenObligations(session, true);
  if (query.isError) return <p className="px-3 py-2 text-failed text-xs">{query.error.message}</p>;
  if (obligations === undefined) return <p className="px-3 py-2 text-ink-3 text-xs">Loading…</p>;
  return (
    <ul>
      {obligations.map(({ messageId, from, text, sentAt, owedSince, isOverdue, candidate }) => (
        <li key={messageId} className="flex flex-col border-line border-b pb-1 last:border-0">
          <a
            href={`#${encodeURIComponent(`message-${messageId}`)}`}
            onClick={onLeave}
            className="block px-3 py-1.5 -outline-offset-2 hover:bg-raised/60"
          >
            <span className="flex items-baseline gap-2 text-2xs text-ink-3">
              <span className="min-w-0 flex-1 truncate">
                {isUnnamed(from) ? (
                  'From a person'
                ) : (
                  <>
                    From {from.kind === 'agent' && 'agent '}
                    <Quoted text={from.id} />
                  </>
                )}
              </span>
              {isOverdue === true && <span className="font-medium text-waiting">overdue</span>}
              <Ago at={owedSince ?? sentAt} inWords />
            </span>
            <span dir="auto" className="block truncate text-xs">
              <Words text={toPlainText(text)} />
            </span>
          </a>
          <span className="flex flex-col gap-1 px-3">
            {candidate != null && <AcceptReply sessionId={session.id} messageId={messageId} candidate={candidate} />}
            <WaiveReply sessionId={session.id} messageId={messageId} />
          </span>
        </li>
      ))}
    </ul>
  );
}

const CLEARED: Record<ClearedBy, string> = {
  turn: 'turn finished',
  reply: 'replied',
  accepted: 'accepted as reply',
  waived: 'no reply needed',
  undelivered: 'not delivered',
};

/** The last settled replies, with reason and time. */
function SettledList({ session, onLeave }: { session: SessionSummary; onLeave: () => void }) {
  const { data } = useSessionObligations(session);
  if (data === undefined || data.settled.length === 0) return null;
  return (
    <section aria-label="Recently settled" className="border-line border-t pt-1">
      <h3 className="px-3 text-2xs text-ink-3">Recently settled</h3>
      <ul>
        {data.settled.slice(0, 5).map((one) => (
          <li key={one.messageId}>
            <a
              href={`#${encodeURIComponent(placeOf(one))}`}
              onClick={onLeave}
              className="flex items-baseline gap-2 px-3 py-1 text-2xs text-ink-3 -outline-offset-2 hover:bg-raised/60"
            >
              <span dir="auto" className="min-w-0 flex-1 truncate text-ink-2">
                <Words text={toPlainText(one.text)} />
              </span>
              <span className="shrink-0">
                {one.clearedBy === null ? 'settled' : CLEARED[one.clearedBy]}
                {one.clearedBy === 'waived' && one.reason !== null && (
                  <>
                    : <Phrase text={one.reason} />
                  </>
                )}
              </span>
              {one.settledAt !== null && <Ago at={one.settledAt} inWords />}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Anchor of the turn that answered the message, else of the message. */
function placeOf({ answeredInTurnId, messageId }: Obligation): string {
  return answeredInTurnId === null ? `message-${messageId}` : `turn-${answeredInTurnId}`;
}
