import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxItemPath, needsPerson } from '@interlude/protocol/inbox-rules';
import { comparePositions, type Position } from '@interlude/protocol/position';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';
import { sessionTitle } from '@/components/sessions/session-labels';
import { readStored, writeStored } from '@/components/ui/browser-storage';
import { toPlainText } from '@/components/ui/plain-text';
import { inQuotes, nameText } from '@/components/ui/verbatim';
import { itemTitle, KIND_WORD } from './inbox-labels';

/** Storage key of the settings. */
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
  /** Disabled kinds. */
  off: readonly NoticeKind[];
  /** Local times as `22:00`; may span midnight. Null: no quiet hours. */
  quiet: { from: string; to: string } | null;
}

export const NO_NOTICES: NoticeSettings = { isOn: false, off: OPTIONAL_KINDS, quiet: null };

/** The stored form. `on` lists the optional kinds that are enabled; earlier versions stored only `off`. */
export function storedNotices({ isOn, off, quiet }: NoticeSettings): string {
  return JSON.stringify({ isOn, off, on: OPTIONAL_KINDS.filter((kind) => !off.includes(kind)), quiet });
}

/** @param stored from `storedNotices`; anything else gives the defaults */
export function noticeSettings(stored: string | null): NoticeSettings {
  if (stored === null) return NO_NOTICES;
  try {
    const { isOn, off, on, quiet } = JSON.parse(stored) as Partial<NoticeSettings & { on: NoticeKind[] }>;
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
  /** Identifies a notification, so it is shown once. */
  key: string;
  /** Epoch milliseconds on the server's clock. */
  at: number;
  /** Position of its cause; null if only the time is known. */
  position: Position | null;
  title: string;
  body: string;
  href: string;
}

/** Delay for everything but requests, until turns and tasks have settled. */
const SETTLE_MS = 3_000;
const IMMEDIATE: ReadonlySet<InboxKind> = new Set(['permission', 'question']);

/** All notifications for the current state, including those shown already. */
export function currentNotices(
  rows: { items: readonly InboxItem[]; sessions: Iterable<SessionSummary> },
  settings: NoticeSettings,
  now: number,
): Notice[] {
  const found: Notice[] = [];
  for (const item of rows.items) {
    const { id, kind, since, agentId } = item;
    const isSettled = IMMEDIATE.has(kind) || now - since >= SETTLE_MS;
    if (settings.off.includes(kind) || !needsPerson(item, now, null) || !isSettled) continue;
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

/** `Permission needed · builder`. The agent's name, the only foreign text, comes last. */
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
        .map((text) => inQuotes(toPlainText(text)))
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
      body: `${inQuotes(toPlainText(description))}${code}`,
      href: `/sessions/${encodeURIComponent(id)}#task-${position}`,
    },
  ];
}

/** Storage key of the last check. */
export const LAST_CHECK_KEY = 'notices-look';

/** The last check by any tab. Notifications newer than it are shown once. */
interface LastCheck {
  /** Epoch milliseconds on the server's clock. */
  at: number;
  /** Position up to which everything was known. */
  upTo: Position;
  /** Keys of notifications that are not shown again. */
  told: readonly string[];
}

/** Maximum delay until a notification without a position appears: it settles first. */
const SETTLING_MS = 15_000;
/** Maximum number of keys kept. Position and time identify older notifications. */
const MAX_KEYS = 500;

/**
 * Finds new notifications. The first check, and the first after a server reset, finds none.
 *
 * @param before the last check; null at the first one
 * @param upTo position up to which everything is known
 */
export function nextCheck(
  before: LastCheck | null,
  current: readonly Notice[],
  now: number,
  upTo: Position,
): { check: LastCheck; fresh: Notice[] } {
  const told = new Set(before?.told);
  const since = before !== null && comparePositions(before.upTo, upTo) <= 0 ? before : null;
  const isAfter = ({ at, position }: Notice, { upTo, at: checkedAt }: LastCheck) =>
    (position !== null && comparePositions(position, upTo) > 0) || at > checkedAt - SETTLING_MS;
  const isFresh = (notice: Notice) => since !== null && !told.has(notice.key) && isAfter(notice, since);
  const newestFirst = current.length <= MAX_KEYS ? current : current.toSorted((a, b) => b.at - a.at);
  const kept = newestFirst.filter(({ at }, place) => place < MAX_KEYS || at > now - 2 * SETTLING_MS);
  const keys = [...new Set([...kept.map(({ key }) => key), ...told])].slice(0, Math.max(MAX_KEYS, kept.length));
  return { check: { at: now, upTo, told: keys }, fresh: current.filter(isFresh) };
}

/** @param stored JSON of a `LastCheck`; anything else counts as null */
export function parseCheck(stored: string | null): LastCheck | null {
  try {
    const { at, upTo, told } = JSON.parse(stored ?? '') as LastCheck;
    return typeof at === 'number' && typeof upTo === 'string' && Array.isArray(told) ? { at, upTo, told } : null;
  } catch {
    return null;
  }
}

/** Storage key of the browser's reason for refusing notifications; empty if it doesn't. */
export const REFUSAL_KEY = 'notices-refused';

/** True if this browser has the needed features. Browser only. */
export function canNotify(): boolean {
  return 'Notification' in window && window.isSecureContext && 'locks' in navigator;
}

/** Turns notifications off after the browser refused one, and keeps the reason. */
export function noteRefusal(error: unknown): void {
  writeStored(SETTINGS_KEY, JSON.stringify({ ...noticeSettings(readStored(SETTINGS_KEY)), isOn: false }));
  writeStored(REFUSAL_KEY, error instanceof Error && error.message !== '' ? error.message : String(error));
}

/**
 * Redacts secrets in a desktop notification, which may appear on a lock screen or a shared screen. Loads the rules when
 * the first notification is due, to keep them out of every page's bundle.
 */
export async function noticeText({ title, body }: Pick<Notice, 'title' | 'body'>): Promise<NoticeText> {
  try {
    const { redactedFor } = await import('@interlude/protocol/redaction/redact-model');
    return { title: redactedFor('desktop-notice', title), body: redactedFor('desktop-notice', body) };
  } catch {
    // Without the rules, the notification must not quote anything.
    return { title: 'Needs your attention', body: 'Open Interlude to see it.' };
  }
}

interface NoticeText {
  title: string;
  body: string;
}
