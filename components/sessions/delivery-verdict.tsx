'use client';

import type { MissingRecords, ProducerSummary, SessionDelivery, SessionSummary } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name, Words } from '@/components/ui/name';

/** Most losses that are listed here; the agent's page has them all. */
const SHOWN = 5;

/** Whether everything that was told of a session is here: `Complete to #812, nothing missing`, or what is missing. */
export function DeliveryVerdict({ session }: { session: SessionSummary }) {
  const { data, error } = useQuery({
    // asked again with each row of the session: what is missing is told by it
    queryKey: ['delivery', session.id, session.updatedPosition],
    queryFn: ({ signal }) => fetchJson<SessionDelivery>(`/sessions/${encodeURIComponent(session.id)}/delivery`, signal),
    placeholderData: (before) => before,
  });
  if (error !== null) return <p className="text-failed">{error.message}</p>;
  if (data === undefined) return <p className="text-ink-3">Looking at what was delivered…</p>;
  const { producers, missing, lostCount, quarantinedCount, unnamedCount, waiting } = data;
  const isWhole = lostCount === 0 && quarantinedCount === 0;
  return (
    <>
      <p className="flex items-baseline gap-1.5">
        <Glyph
          name={isWhole && unnamedCount === 0 ? 'completed' : 'lost'}
          className={isWhole && unnamedCount === 0 ? 'relative top-[1.5px] text-working' : 'relative top-[1.5px]'}
        />
        <span>
          {completeTo(producers)}
          {isWhole ? unnamedCount === 0 && ', nothing missing' : `, ${lackOf(lostCount, quarantinedCount)} missing`}
        </span>
      </p>
      {unnamedCount > 0 && (
        <p className="pl-[18px]">
          {plural(unnamedCount, 'record')} of its {producers.length === 1 ? 'outbox' : 'outboxes'} in quarantine{' '}
          {unnamedCount === 1 ? 'names' : 'name'} no session, and may be of this one (
          <Link
            prefetch={false}
            href={`/agents/${encodeURIComponent(session.agentId)}`}
            className="underline hover:text-ink"
          >
            look
          </Link>
          )
        </p>
      )}
      {waiting !== null && waiting.count > 0 && (
        <p className="pl-[18px] text-ink-3">
          {plural(waiting.count, 'record')} to come, by its runner’s last word (<Ago at={waiting.at} />)
        </p>
      )}
      {missing.length > 0 && (
        <ul className="pl-[18px] text-ink-2">
          {missing.slice(0, SHOWN).map((one) => (
            <Missing key={one.position} missing={one} />
          ))}
        </ul>
      )}
      {missing.length > SHOWN && <p className="pl-[18px] text-ink-3">and earlier ones, in the transcript</p>}
    </>
  );
}

/** `Complete to #812`; of several outboxes the number of each. */
function completeTo(producers: readonly ProducerSummary[]): string {
  if (producers.length === 0) return 'Nothing delivered by an outbox';
  return `Complete to ${producers.map(({ lastSeq }) => `#${lastSeq.toLocaleString('en')}`).join(', ')}`;
}

function lackOf(lost: number, quarantined: number): string {
  const parts = [lost > 0 && `${plural(lost, 'record')} lost`, quarantined > 0 && `${quarantined} in quarantine`];
  return parts.filter(Boolean).join(' and ');
}

function Missing({ missing: { kind, at, count, seq, reason } }: { missing: MissingRecords }) {
  return (
    <li>
      {kind === 'lost' ? `${plural(count, 'record')} lost` : seq === null ? 'A record' : <Name text={`#${seq}`} />}
      {kind === 'quarantined' && ' in quarantine'} (<Ago at={at} />
      ): <Words text={reason} />
    </li>
  );
}
