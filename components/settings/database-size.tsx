'use client';

import type { Storage } from '@interlude/protocol/storage';
import { Moment } from '@/components/ui/day';
import { formatBytes } from '@/components/ui/format-size';
import { type Column, FactTable } from './fact-table';
import { Section } from './section';
import { Share } from './share';
import { PART_WORDS } from './storage-words';
import { useStorage } from './use-storage';

const WIDTHS = '@3xl:grid-cols-[minmax(0,2fr)_minmax(0,4fr)_minmax(0,2fr)_80px]';

interface Part {
  id: string;
  name: string;
  about: string;
  bytes: number;
  share: number;
}

/** How large the database is, and what takes the room. */
export function DatabaseSize({ initial }: { initial: Storage | null }) {
  const { storage, error, isLooking, again } = useStorage(initial);
  return (
    <Section
      title="Database"
      about="What is stored, and how much room it takes. Space of what was removed is used again before the database grows."
    >
      <p className="flex min-h-6 flex-wrap items-baseline gap-x-3 pb-1 text-2xs text-ink-3">
        <button
          type="button"
          onClick={again}
          aria-disabled={isLooking}
          className="underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          Look again
        </button>
        <span role="status">{isLooking ? 'Looking through it…' : storage !== null && <Taken storage={storage} />}</span>
        <span role="alert" className="text-failed">
          {error?.message}
        </span>
      </p>
      {storage !== null && <Parts storage={storage} />}
    </Section>
  );
}

function Taken({ storage: { at, method } }: { storage: Storage }) {
  return (
    <>
      as of <Moment at={at} seconds />
      {method === 'estimated' && '; how it is shared out is estimated from samples, because this database can’t tell'}
    </>
  );
}

function Parts({ storage }: { storage: Storage }) {
  const { bytes, freeBytes } = storage;
  return (
    <>
      <p className="pb-2 text-ink-2">
        <span className="font-medium text-ink">{formatBytes(bytes)} in all</span>, {formatBytes(freeBytes)} of it free
      </p>
      <FactTable<Part>
        label="Parts of the database"
        rows={partsOf(storage)}
        widths={WIDTHS}
        columns={columnsOf(storage)}
      />
    </>
  );
}

function partsOf({ parts, bytes: all, freeBytes }: Storage): Part[] {
  const shown = parts.map(({ name, bytes, tables }) => {
    const words = PART_WORDS[name];
    const [largest] = tables;
    const ofIndexes = name === 'events' && largest?.indexBytes ? `; indexes ${formatBytes(largest.indexBytes)}` : '';
    return { id: name, name: words.name, about: words.about + ofIndexes, bytes, share: bytes / all };
  });
  const free = { id: 'free', name: 'Free', about: 'what was removed', bytes: freeBytes, share: freeBytes / all };
  return [...shown, free];
}

function columnsOf({ method }: Storage): Column<Part>[] {
  const about = method === 'estimated' ? 'about ' : '';
  return [
    { name: 'Part', cell: ({ name }) => name },
    { name: 'What is in it', className: '@max-3xl:block!', cell: (part) => part.about },
    { name: 'Share', cell: ({ share }) => <Share share={share} /> },
    { name: 'Size', className: 'tabular text-right', cell: ({ bytes }) => `${about}${formatBytes(bytes)}` },
  ];
}
