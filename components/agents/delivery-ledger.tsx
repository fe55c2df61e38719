'use client';

import type { ProducerSummary } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { Ago } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

const COLUMNS = ['Outbox', 'Verified', 'Sent twice', 'Gaps refused', 'Quarantined', 'Lost', 'Clock', 'Last heard'];

/**
 * What came of each outbox. Its records are numbered without a hole, so the number of the last one is proof that all
 * before it are here.
 */
export function DeliveryLedger({ producers, count }: { producers: readonly ProducerSummary[]; count: number }) {
  const omitted = count - producers.length;
  if (producers.length === 0) return <p className="text-ink-3">No outbox has delivered for this agent yet.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls sideways must be reachable by keyboard
    <div className="overflow-x-auto" tabIndex={0}>
      <table className="tabular w-full min-w-[640px] text-xs">
        <thead className="text-left text-2xs text-ink-3">
          <tr className="border-line-strong border-b">
            {COLUMNS.map((name, at) => (
              <th key={name} scope="col" className={clsx('py-1.5 pr-4 font-normal last:pr-0', at > 1 && 'text-right')}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {producers.map((producer) => (
            <tr key={`${producer.id}:${producer.epoch}`} className="border-b align-baseline">
              <td
                className="max-w-[200px] truncate py-1.5 pr-4"
                title={`${nameText(producer.id)}, epoch ${producer.epoch}`}
              >
                <Name text={producer.id} />
              </td>
              <td className="whitespace-nowrap py-1.5 pr-4">
                <Verdict producer={producer} />
              </td>
              <Count value={producer.duplicates} />
              <Count value={producer.gaps} />
              <Count value={producer.rejected} alarming />
              <Count value={producer.lost} alarming />
              <td className="py-1.5 pr-4 text-right">
                {producer.clockSkewMs === null ? (
                  <span className="text-ink-3">in step</span>
                ) : (
                  <span className="text-waiting">
                    {formatDuration(Math.abs(producer.clockSkewMs))} {producer.clockSkewMs > 0 ? 'ahead' : 'behind'}
                  </span>
                )}
              </td>
              <td className="py-1.5 text-right text-ink-3">
                <Ago at={producer.lastSeenAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {omitted > 0 && (
        <p className="py-1.5 text-ink-3 text-xs">{plural(omitted, 'older outbox', 'older outboxes')} not listed.</p>
      )}
    </div>
  );
}

function Verdict({ producer }: { producer: ProducerSummary }) {
  const last = `#${producer.lastSeq.toLocaleString('en')}`;
  if (producer.lost > 0) {
    return (
      <span className="flex items-baseline gap-1.5 text-waiting">
        <Glyph name="lost" className="relative top-[1.5px]" />
        {last}, {plural(producer.lost, 'record')} declared lost
      </span>
    );
  }
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name="completed" className="relative top-[1.5px] text-working" />
      Complete to {last}
    </span>
  );
}

function Count({ value, alarming = false }: { value: number; alarming?: boolean }) {
  return (
    <td className={`py-1.5 pr-4 text-right ${value === 0 ? 'text-ink-3' : alarming ? 'text-waiting' : ''}`}>
      {value.toLocaleString('en')}
    </td>
  );
}
