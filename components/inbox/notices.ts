import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxItemPath, isUnread } from '@interlude/protocol/inbox-rules';
import type { Position } from '@interlude/protocol/position';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';
import { sessionTitle } from '@/components/sessions/session-words';
import { plainWords } from '@/components/ui/plain-words';
import { inQuotes, nameText } from '@/components/ui/verbatim';
import { itemTitle, KIND_WORD } from './inbox-words';

/** What a browser is told of them is kept under this name. */
export const SETTINGS_KEY = 'notices';

/** Off by default: these need no action. */
const OPTIONAL_KINDS = ['finished', 'task-failed'] as const;
const OPTIONAL: ReadonlySet<string> = new Set(OPTIONAL_KINDS);
/** Kinds of desktop notifications: inbox items, sessions that have finished, and failed tasks. */
export const NOTICE_KINDS = [...INBOX_KINDS, ...OPTIONAL_KINDS] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

export const NOTICE_WORD: Record<NoticeKind, string> = {
  ...KIND_WORD,
  finished: 'Finished, nothing running',
  'task-failed': 'Failed tasks',
};

/** First words of a notification's title. */
const TITLE_WORD: Record<InboxKind, string> = {
  permission: 'Permission needed',
  question: 'Question',
  'overdue-reply': 'Reply overdue',
  failure: 'Failed',
  undelivered: 'Result not delivered',
  'lost-contact': 'Lost contact',
  'hook-failure': 'Hook failed',
  'delivery-gap': 'Records missing',
  parked: 'Records unassigned',
};

export interface NoticeSettings {
  isOn: boolean;
  /** Kinds that nobody wants to be notified of. */
  off: readonly NoticeKind[];
  /** From when to when to be quiet, as `22:00`, by the reader's own clock; over midnight too. Null: never. */
  quiet: { from: string; to: string } | null;
}

export const NO_NOTICES: NoticeSettings = { isOn: false, off: OPTIONAL_KINDS, quiet: null };

/** The stored form. `on` lists the optional kinds that are enabled; earlier versions stored only `off`. */
export function storedNotices({ isOn, off, quiet }: NoticeSettings): string {
  return JSON.stringify({ isOn, off, on: OPTIONAL_KINDS.filter((kind) => !off.includes(kind)), quiet });
}

/** @param stored as `storedNotices` wrote it; anything else counts as nothing */
export function noticeSettings(stored: string | null): NoticeSettings {
  try {
    const { isOn, off, on, quiet } = JSON.parse(stored ?? '') as Partial<NoticeSettings & { on: NoticeKind[] }>;
    const wanted: readonly NoticeKind[] = on ?? (off?.includes('finished') ? [] : ['finished']);
    const isOff = (kind: NoticeKind) => (OPTIONAL.has(kind) ? !wanted.includes(kind) : off?.includes(kind));
    const isTime = (text: unknown) => typeof text === 'string' && /^\d\d:\d\d$/.test(text);
    return {
      isOn: isOn === true,
      off: NOTICE_KINDS.filter(isOff),
      quiet: quiet != null && isTime(quiet.from) && isTime(quiet.to) ? quiet : null,
    };
  } catch {
    return NO_NOTICES;
  }
}

/** @param time of the day, as `22:00` */
export function isQuiet({ quiet }: NoticeSettings, time: string): boolean {
  if (quiet === null || quiet.from === quiet.to) return false;
  const { from, to } = quiet;
  return from < to ? time >= from && time < to : time >= from || time < to;
}

export interface Notice {
  /** The same for the same thing: nobody is notified of it twice. */
  key: string;
  /** Milliseconds since the epoch at which it came up, on the server's clock. */
  at: number;
  /** Position at which it came up; null if only the time is known. */
  position: Position | null;
  title: string;
  body: string;
  href: string;
}

/** Requests are told at once; of what else comes up, what stands for so long: turn and tasks have settled by then. */
const SETTLE_MS = 3_000;
const AT_ONCE: ReadonlySet<InboxKind> = new Set(['permission', 'question']);

/** Everything that stands now and is to be notified of, whether somebody was or not. */
export function standingNotices(
  rows: { items: readonly InboxItem[]; sessions: Iterable<SessionSummary> },
  settings: NoticeSettings,
  now: number,
): Notice[] {
  const found: Notice[] = [];
  for (const item of rows.items) {
    const { id, kind, since, agentId, claim } = item;
    const isSettled = AT_ONCE.has(kind) || now - since >= SETTLE_MS;
    if (settings.off.includes(kind) || !isUnread(item, now) || claim !== null || !isSettled) continue;
    const title = titled(TITLE_WORD[kind], agentId);
    found.push({
      key: `${id} ${since}`,
      at: since,
      // absent from a server of an earlier version, during an upgrade
      position: item.openedPosition ?? null,
      title,
      body: itemTitle(item),
      href: inboxItemPath(item),
    });
  }
  const isWanted = (kind: NoticeKind) => !settings.off.includes(kind);
  if (!OPTIONAL_KINDS.some(isWanted)) return found;
  for (const session of rows.sessions) {
    if (session.arrangement.archivedAt !== null) continue;
    if (isWanted('finished')) found.push(...finishedNotice(session, now));
    if (isWanted('task-failed')) found.push(...failedTaskNotice(session, now));
  }
  return found;
}

/** `Permission needed · builder`: the agent's name is the only text of others, and comes last. */
function titled(word: string, agentId: string): string {
  return `${word} · ${nameText(agentId)}`;
}

function finishedNotice(session: SessionSummary, now: number): Notice[] {
  const { id, agentId, state, stateSince, runningTaskCount, turnCount, lastText } = session;
  const isDone = (state === 'idle' || state === 'complete') && runningTaskCount === 0 && turnCount > 0;
  if (!isDone || now - stateSince < SETTLE_MS) return [];
  return [
    {
      key: `finished ${id} ${stateSince}`,
      at: stateSince,
      // `updatedPosition` moves with every change of the row, long after the session finished
      position: null,
      title: titled('Finished', agentId),
      body: [sessionTitle(session), ...(lastText === null ? [] : [lastText])]
        .map((text) => inQuotes(plainWords(text)))
        .join('\n'),
      href: `/sessions/${encodeURIComponent(id)}`,
    },
  ];
}

/** Only the last failure of a session: tasks that fail together raise one notification. */
function failedTaskNotice({ id, agentId, failedTask }: SessionSummary, now: number): Notice[] {
  if (failedTask === undefined || now - failedTask.at < SETTLE_MS) return [];
  const { description, exitCode, position, at } = failedTask;
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`;
  return [
    {
      key: `task-failed ${id} ${position}`,
      at,
      position: null,
      title: titled('Task failed', agentId),
      body: `${inQuotes(plainWords(description))}${code}`,
      href: `/sessions/${encodeURIComponent(id)}#task-${position}`,
    },
  ];
}
