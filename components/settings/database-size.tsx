'use client';

import type { Storage, StoragePartName, RetentionRules } from '@interlude/protocol/storage';
import { bytesInWords } from '@/components/ui/bytes-in-words';
import { Moment } from '@/components/ui/moment';
import { type Column, FactTable, Section } from './fact-table';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { SESSION_STATES } from '@interlude/protocol/session-states';

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
          Refresh
        </button>
        <span role="status">{isLooking ? 'Measuring…' : storage !== null && <Taken storage={storage} />}</span>
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
        <span className="font-medium text-ink">{bytesInWords(bytes)} in all</span>, {bytesInWords(freeBytes)} of it free
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
    const ofIndexes = name === 'events' && largest?.indexBytes ? `; indexes ${bytesInWords(largest.indexBytes)}` : '';
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
    { name: 'Size', className: 'tabular text-right', cell: ({ bytes }) => `${about}${bytesInWords(bytes)}` },
  ];
}

/** What the parts of the database are called, and what is in each. */
const PART_WORDS: Record<StoragePartName, { name: string; about: string }> = {
  events: { name: 'Events', about: 'what agents did' },
  views: { name: 'Sessions and agents', about: 'what lists and transcripts are read from' },
  logs: { name: 'Log lines', about: 'the logs of agents' },
  search: { name: 'Search indexes', about: 'by which logs and sessions are searched' },
  commands: { name: 'Commands and inbox', about: 'what people asked for, and what needed them' },
  attachments: { name: 'Attachments', about: 'images and files that people sent' },
  audit: { name: 'Audit', about: 'what people and programs did' },
  quarantine: { name: 'Quarantine', about: 'records that could not be taken' },
  insights: { name: 'Insights', about: 'failures and signals found in logs' },
  webhooks: { name: 'Webhooks', about: 'what was sent to the webhook' },
  access: { name: 'Access', about: 'tokens, sign-ins and members' },
  rest: { name: 'The rest', about: 'what the database needs for itself' },
};

/** What the database takes. @param initial null while it is still looked up */
export function useStorage(initial: Storage | null) {
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['access', 'storage'],
    queryFn: ({ signal }) => fetchJson<Storage>('/storage', signal),
    ...(initial === null ? {} : { initialData: initial }),
    refetchOnMount: initial === null,
    refetchOnWindowFocus: false,
  });
  return { storage: data ?? null, error, isLooking: isFetching, again: () => void refetch() };
}

/** A part of a whole: as a bar, and in percent. */
export function Share({ share }: { share: number }) {
  const percent = share * 100;
  return (
    <span className="flex items-center gap-2">
      <span aria-hidden="true" className="h-1.5 min-w-16 flex-1 overflow-hidden rounded-full bg-sunken">
        <span className="block h-full rounded-full bg-ink-3" style={{ width: `${percent}%` }} />
      </span>
      <span className="tabular w-10 text-right text-2xs">
        {percent > 0 && percent < 1 ? '< 1' : Math.round(percent)} %
      </span>
    </span>
  );
}

const MIB = 1024 * 1024;

/** One limit to what is kept, and the setting that changes it. */
export interface KeptRule {
  /** The setting's name, and which of its limits this is. */
  id: string;
  setting: string;
  name: string;
  about: string;
  kept: string;
}

/** What is kept and for how long, a line for each limit that is set. */
export function keptRules({ days, elsewhereDays, auditDays, maxBytes, logs }: RetentionRules): KeptRule[] {
  const own = SESSION_STATES.filter((state) => days[state] !== elsewhereDays);
  const byState = [...new Set(own.map((state) => days[state]))].map((limit) => ({
    limit,
    states: own.filter((state) => days[state] === limit).map((state) => state.replaceAll('-', ' ')),
  }));
  return [
    rule('RETENTION_DAYS', 'Turns', 'with their tasks, replies and whatever else has ended', forDays(elsewhereDays)),
    ...byState.map(({ limit, states }) => ({
      ...rule(
        'RETENTION_DAYS_BY_STATE',
        'Turns of some sessions',
        `those that are: ${states.join(', ')}`,
        forDays(limit),
      ),
      id: states.join(),
    })),
    rule('RETENTION_MIB', 'All but the logs', 'over that, the oldest turns go sooner', upTo(maxBytes)),
    rule('LOG_RETENTION_DAYS', 'Log lines', 'of every agent', forDays(logs.days)),
    rule('LOG_RETENTION_MIB', 'Log of each agent', 'over that, its oldest lines go sooner', upTo(logs.maxBytes)),
    rule('AUDIT_RETENTION_DAYS', 'Audit', 'what people and programs did', forDays(auditDays)),
  ];
}

function rule(name: string, what: string, about: string, kept: string): KeptRule {
  const setting = `INTERLUDE_${name}`;
  return { id: setting, setting, name: what, about, kept };
}

function forDays(days: number | null): string {
  if (days === null) return 'for ever';
  return days === 1 ? '1 day' : `${days.toLocaleString('en')} days`;
}

function upTo(bytes: number | null): string {
  return bytes === null ? 'any size' : inMebibytes(bytes);
}

/** As the settings count: `0.4 MiB`, `512 MiB`, `20,480 MiB`. */
export function inMebibytes(bytes: number): string {
  const size = bytes / MIB;
  return `${size.toLocaleString('en', { maximumFractionDigits: size < 100 ? 1 : 0 })} MiB`;
}

const COMMANDS = [
  { command: 'db backup <file>', about: 'a copy of one moment, which is a database that Interlude opens' },
  { command: 'db check', about: 'whether everything in it is sound' },
  { command: 'db vacuum', about: 'gives free space of a file back to its disk' },
  { command: 'db copy <from> <to>', about: 'all of it to another file or libSQL server' },
] as const;

/** What whoever runs the server can do with its database, and only there. */
export function DatabaseCommands() {
  return (
    <Section
      title="Looking after it"
      about={
        <>
          On the machine of the dashboard, while it runs; <code className="text-ink-2">docs/database.md</code> has the
          details.
        </>
      }
    >
      <dl className="space-y-2 text-xs">
        {COMMANDS.map(({ command, about }) => (
          <div key={command}>
            <dt>
              <code className="[overflow-wrap:anywhere]">npm run -s interlude -- {command}</code>
            </dt>
            <dd className="text-ink-3">{about}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
