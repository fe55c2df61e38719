'use client';

import { SESSION_STATES } from '@interlude/protocol/session-states';
import type { RetentionRules, Storage, StoragePartName } from '@interlude/protocol/storage';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { Moment } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { formatBytes } from '@/components/ui/format-size';
import { type Column, FactTable, Section } from './fact-table';

const WIDTHS = '@3xl:grid-cols-[minmax(0,2fr)_minmax(0,4fr)_minmax(0,2fr)_80px]';

interface Part {
  id: string;
  name: string;
  about: string;
  bytes: number;
  share: number;
}

export function DatabaseSize({ initial }: { initial: Storage | null }) {
  const { storage, error, isLooking, again } = useStorage(initial);
  return (
    <Section
      id="database"
      title="Database"
      about="Size of the database by kind of data. Free space is reused before the file grows."
    >
      <p className="flex min-h-6 flex-wrap items-baseline gap-x-3 pb-1 text-2xs text-ink-3">
        <button
          type="button"
          onClick={again}
          aria-disabled={isLooking}
          className="min-h-6 underline decoration-line-strong underline-offset-2 hover:text-ink"
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
      Updated <Moment at={at} seconds />
      {method === 'estimated' && '; sizes are estimated from samples, because this database doesn’t report them'}
    </>
  );
}

function Parts({ storage }: { storage: Storage }) {
  const { bytes, freeBytes } = storage;
  return (
    <>
      <p className="pb-2 text-ink-2">
        <span className="font-medium text-ink">{formatBytes(bytes)} in total</span>, {formatBytes(freeBytes)} free
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
  const free = {
    id: 'free',
    name: 'Free',
    about: 'space freed by removed data',
    bytes: freeBytes,
    share: freeBytes / all,
  };
  return [...shown, free];
}

function columnsOf({ method }: Storage): Column<Part>[] {
  const about = method === 'estimated' ? 'about ' : '';
  return [
    { name: 'Part', cell: ({ name }) => name },
    { name: 'Content', className: '@max-3xl:block!', cell: (part) => part.about },
    { name: 'Share', className: '@max-3xl:block!', cell: ({ share }) => <Share share={share} /> },
    { name: 'Size', className: 'tabular text-right', cell: ({ bytes }) => `${about}${formatBytes(bytes)}` },
  ];
}

/** Names and contents of the parts. */
const PART_WORDS: Record<StoragePartName, { name: string; about: string }> = {
  events: { name: 'Events', about: 'records from agents' },
  views: { name: 'Sessions and agents', about: 'lists and transcripts' },
  logs: { name: 'Log lines', about: 'agents’ log lines' },
  search: { name: 'Search indexes', about: 'for searching logs and sessions' },
  commands: { name: 'Commands and inbox', about: 'commands from people, and inbox items' },
  attachments: { name: 'Attachments', about: 'images and files in messages' },
  audit: { name: 'Audit', about: 'actions by people and programs' },
  quarantine: { name: 'Rejected records', about: 'records the server rejected' },
  insights: { name: 'Insights', about: 'failures and signals found in logs' },
  webhooks: { name: 'Webhooks', about: 'webhook deliveries' },
  access: { name: 'Access', about: 'tokens, sign-ins and members' },
  rest: { name: 'Other', about: 'the database’s internal data' },
};

/** The database's sizes. @param initial null if measuring took too long for the page */
function useStorage(initial: Storage | null) {
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['access', 'storage'],
    queryFn: ({ signal }) => fetchJson<Storage>('/storage', signal),
    ...(initial === null ? {} : { initialData: initial }),
    refetchOnMount: initial === null,
    refetchOnWindowFocus: false,
  });
  return { storage: data ?? null, error, isLooking: isFetching, again: () => void refetch() };
}

/** A share as a bar and in percent. */
function Share({ share }: { share: number }) {
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

/** A retention limit with its setting. */
export interface RetentionRow {
  /** The setting's name, or the states that the limit applies to. */
  id: string;
  setting: string;
  name: string;
  about: string;
  limit: string;
}

/** One row per retention limit. */
export function retentionRows({ days, elsewhereDays, auditDays, maxBytes, logs }: RetentionRules): RetentionRow[] {
  const own = SESSION_STATES.filter((state) => days[state] !== elsewhereDays);
  const byState = [...new Set(own.map((state) => days[state]))].map((limit) => ({
    limit,
    states: own.filter((state) => days[state] === limit).map((state) => state.replaceAll('-', ' ')),
  }));
  return [
    rule(
      'RETENTION_DAYS',
      'Turns',
      'with their ended tasks, settled replies, and finished commands and inbox items',
      forDays(elsewhereDays),
    ),
    ...byState.map(({ limit, states }) => ({
      ...rule(
        'RETENTION_DAYS_BY_STATE',
        'Turns, by session state',
        `sessions in state: ${states.join(', ')}`,
        forDays(limit),
      ),
      id: states.join(),
    })),
    rule(
      'RETENTION_MIB',
      'Everything except logs',
      'above this size, the oldest turns are removed before they expire',
      upTo(maxBytes),
    ),
    rule('LOG_RETENTION_DAYS', 'Log lines', 'of all agents', forDays(logs.days)),
    rule(
      'LOG_RETENTION_MIB',
      'Each agent’s log',
      'above this size, the oldest lines are removed before they expire',
      upTo(logs.maxBytes),
    ),
    rule('AUDIT_RETENTION_DAYS', 'Audit', 'actions by people and programs', forDays(auditDays)),
  ];
}

function rule(name: string, what: string, about: string, limit: string): RetentionRow {
  const setting = `INTERLUDE_${name}`;
  return { id: setting, setting, name: what, about, limit };
}

function forDays(days: number | null): string {
  if (days === null) return 'forever';
  return plural(days, 'day');
}

function upTo(bytes: number | null): string {
  return bytes === null ? 'any size' : inMebibytes(bytes);
}

/** `0.4 MiB`, `512 MiB`, `20,480 MiB` */
function inMebibytes(bytes: number): string {
  const size = bytes / MIB;
  return `${size.toLocaleString('en', { maximumFractionDigits: size < 100 ? 1 : 0 })} MiB`;
}

const COMMANDS = [
  { command: 'db backup <file>', about: 'write a consistent copy that Interlude can open' },
  { command: 'db check', about: 'check the integrity of all data' },
  { command: 'db vacuum', about: 'return free space to the disk' },
  { command: 'db copy <from> <to>', about: 'copy everything to another file or libSQL server' },
] as const;

/** Commands for the database, run on the server's machine. */
export function DatabaseCommands() {
  return (
    <Section
      id="maintenance"
      title="Maintenance"
      about={
        <>
          Run these on the server’s machine. The server can keep running. See{' '}
          <code className="text-ink-2">docs/database.md</code> for details.
        </>
      }
    >
      <dl className="space-y-2 text-xs">
        {COMMANDS.map(({ command, about }) => (
          <div key={command}>
            <dt>
              <code className="[overflow-wrap:anywhere]">npx interlude {command}</code>
            </dt>
            <dd className="text-ink-3">{about}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

const RULE_WIDTHS = '@3xl:grid-cols-[minmax(0,2fr)_minmax(0,4fr)_minmax(0,3.4fr)_80px]';

/** Retention limits with their settings. @param initial null if measuring took too long for the page */
export function RetentionTable({ rules, initial }: { rules: RetentionRules; initial: Storage | null }) {
  const { storage } = useStorage(initial);
  return (
    <Section
      id="retention"
      title="Retention"
      about={
        <>
          The oldest data is removed first, with a note in the transcript. Open turns, running tasks, requests and
          pending replies are kept regardless of age. The server’s environment variables set the limits. See{' '}
          <code className="text-ink-2">docs/database.md</code> for details.
        </>
      }
    >
      {rules.maxBytes !== null && storage !== null && <Fullness storage={storage} maxBytes={rules.maxBytes} />}
      <FactTable<RetentionRow>
        label="Retention"
        rows={retentionRows(rules)}
        widths={RULE_WIDTHS}
        columns={[
          { name: 'Data', cell: ({ name }) => name },
          { name: 'Details', className: '@max-3xl:block!', cell: ({ about }) => about },
          {
            name: 'Set by',
            before: 'set by',
            cell: ({ setting }) => <code className="text-2xs [overflow-wrap:anywhere]">{setting}</code>,
          },
          { name: 'Kept', className: 'tabular text-right', cell: ({ limit }) => limit },
        ]}
      />
    </Section>
  );
}

/** The used share of the size limit. */
function Fullness({ storage: { bytes, freeBytes, parts }, maxBytes }: { storage: Storage; maxBytes: number }) {
  // Excludes logs, which have their own limit, and the search index, which consists mostly of logs.
  const logs = parts.filter(({ name }) => name === 'logs' || name === 'search');
  const used = bytes - freeBytes - logs.reduce((sum, part) => sum + part.bytes, 0);
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1 pb-2 text-ink-2">
      <p>
        <span className="font-medium text-ink">{inMebibytes(used)}</span> of {inMebibytes(maxBytes)} in use
      </p>
      <div className="min-w-48 max-w-80 flex-1">
        <Share share={used / maxBytes} />
      </div>
    </div>
  );
}
