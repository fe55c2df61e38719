'use client';

import type { QuarantinedRecord } from '@interlude/protocol/read-models';
import { SessionLink } from '@/components/sessions/session-link';
import { Ago } from '@/components/ui/clock';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { VerbatimText } from '@/components/ui/verbatim-text';

/**
 * Records that could not be taken as they were, each with the reason; of a long one only the beginning.
 * @param total how many there are that nobody has settled
 */
export function QuarantineList({ records, total }: { records: readonly QuarantinedRecord[]; total: number }) {
  const unsettled = records.filter(({ parked }) => parked === null || parked.settledAt === null).length;
  return (
    <>
      <ul>
        {records.map((entry) => (
          <li key={entry.position} className="border-line border-b py-2">
            <details>
              <summary className="flex list-none flex-wrap items-baseline gap-x-3 [&::-webkit-details-marker]:hidden">
                <span className="font-mono text-waiting text-xs">
                  <Name text={entry.code} />
                </span>
                <span className="min-w-0 flex-1 text-ink-2 text-xs">
                  <Name text={entry.message} />
                </span>
                <span className="tabular text-2xs text-ink-3">
                  <Name text={entry.producerId} /> #{entry.seq} · <Ago at={entry.receivedAt} />
                </span>
              </summary>
              <VerbatimText
                text={entry.excerpt ?? JSON.stringify(entry.record, null, 2)}
                label="record"
                className="mt-2 text-ink-2"
              />
              {entry.excerpt !== null && (
                <p className="text-ink-3 text-xs">The beginning of {entry.size.toLocaleString('en')} bytes.</p>
              )}
              {entry.parked !== null && entry.parked.settledAt !== null && (
                <p className="text-ink-2 text-xs">
                  {entry.parked.state === 'assigned' ? 'Assigned to ' : 'Discarded'}
                  {entry.parked.assignedSessionId !== null && <SessionLink id={entry.parked.assignedSessionId} />} by{' '}
                  {entry.parked.settledBy}, <Ago at={entry.parked.settledAt} />
                  {entry.parked.reason !== null && (
                    <>
                      : <Name text={entry.parked.reason} most={2_000} />
                    </>
                  )}
                </p>
              )}
              {entry.sessionId !== null && (
                <Link
                  href={`/sessions/${encodeURIComponent(entry.sessionId)}`}
                  className="text-ink-3 text-xs underline hover:text-ink"
                >
                  Session it came for
                </Link>
              )}
            </details>
          </li>
        ))}
      </ul>
      {total > unsettled && (
        <p className="mt-2 text-ink-3 text-xs">
          The newest {unsettled} of {total.toLocaleString('en')}.
        </p>
      )}
    </>
  );
}
