'use client';

import type { ClearedBy, Obligation, SessionSummary } from '@interlude/protocol/read-models';
import { Ago } from '@/components/ui/clock';
import { Name, Words } from '@/components/ui/name';
import { plainWords } from '@/components/ui/plain-words';
import { useSessionObligations } from './use-session-obligations';

const CLEARED: Record<ClearedBy, string> = {
  turn: 'its turn finished',
  reply: 'the agent replied',
  accepted: 'a text was taken for the reply',
  waived: 'no reply needed',
  undelivered: 'it never reached the agent',
};

/** What settled the last replies, and when. */
export function SettledList({ session, onLeave }: { session: SessionSummary; onLeave: () => void }) {
  const { data } = useSessionObligations(session);
  if (data === undefined || data.settled.length === 0) return null;
  return (
    <section aria-label="Settled lately" className="border-line border-t pt-1">
      <h3 className="px-3 text-2xs text-ink-3">Settled lately</h3>
      <ul>
        {data.settled.slice(0, 5).map((one) => (
          <li key={one.messageId}>
            <a
              href={`#${encodeURIComponent(placeOf(one))}`}
              onClick={onLeave}
              className="flex items-baseline gap-2 px-3 py-1 text-2xs text-ink-3 -outline-offset-2 hover:bg-raised/60"
            >
              <span dir="auto" className="min-w-0 flex-1 truncate text-ink-2">
                <Words text={plainWords(one.text)} />
              </span>
              <span className="shrink-0">
                {one.clearedBy === null ? 'settled' : CLEARED[one.clearedBy]}
                {one.clearedBy === 'waived' && one.reason !== null && (
                  <>
                    : <Name text={one.reason} />
                  </>
                )}
              </span>
              {one.settledAt !== null && <Ago at={one.settledAt} />}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The turn that answered it, else the message. */
function placeOf({ answeredInTurnId, messageId }: Obligation): string {
  return answeredInTurnId === null ? `message-${messageId}` : `turn-${answeredInTurnId}`;
}
