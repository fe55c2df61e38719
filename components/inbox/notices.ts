import { sessionTitle } from '@/components/sessions/session-words';
import { plainWords } from '@/components/ui/plain-words';
import { nameText } from '@/components/ui/verbatim';
import { INBOX_KINDS, type InboxItem, type InboxKind, isNews, placeOf } from '@/lib/protocol/inbox';
import type { Position } from '@/lib/protocol/position';
import type { SessionSummary } from '@/lib/protocol/read-models';
import { itemTitle, KIND_WORD } from './inbox-words';

/** What a browser is told of them is kept under this name. */
export const SETTINGS_KEY = 'interlude-notices';

/** What desktop notifications are of: items of the inbox, and sessions that have done what they were at. */
export const NOTICE_KINDS = [...INBOX_KINDS, 'finished'] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

export const NOTICE_WORD: Record<NoticeKind, string> = { ...KIND_WORD, finished: 'Finished sessions' };

export interface NoticeSettings {
  isOn: boolean;
  /** Kinds that nobody wants to be notified of. */
  off: readonly NoticeKind[];
  /** From when to when to be quiet, as `22:00`, by the reader's own clock; over midnight too. Null: never. */
  quiet: { from: string; to: string } | null;
}

export const NO_NOTICES: NoticeSettings = { isOn: false, off: ['finished'], quiet: null };

/** @param stored as `JSON.stringify` wrote it; anything else counts as nothing */
export function noticeSettings(stored: string | null): NoticeSettings {
  try {
    const { isOn, off, quiet } = JSON.parse(stored ?? '') as Partial<NoticeSettings>;
    const isTime = (text: unknown) => typeof text === 'string' && /^\d\d:\d\d$/.test(text);
    return {
      isOn: isOn === true,
      off: NOTICE_KINDS.filter((kind) => off?.includes(kind)),
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
    if (settings.off.includes(kind) || !isNews(item, now) || claim !== null || !isSettled) continue;
    const title = `${nameText(agentId)}: ${KIND_WORD[kind].toLowerCase()}`;
    found.push({
      key: `${id} ${since}`,
      at: since,
      // absent from a server of an earlier version, during an upgrade
      position: item.openedPosition ?? null,
      title,
      body: itemTitle(item),
      href: placeOf(item),
    });
  }
  if (settings.off.includes('finished')) return found;
  for (const session of rows.sessions) {
    const { id, agentId, state, stateSince, runningTaskCount, turnCount, lastText, arrangement } = session;
    const isDone = (state === 'idle' || state === 'complete') && runningTaskCount === 0 && turnCount > 0;
    if (!isDone || now - stateSince < SETTLE_MS || arrangement.archivedAt !== null) continue;
    found.push({
      key: `finished ${id} ${stateSince}`,
      at: stateSince,
      // `updatedPosition` moves with every change of the row, long after the session finished
      position: null,
      title: `${nameText(agentId)}: ${plainWords(sessionTitle(session))}`,
      body: lastText === null ? 'It has finished.' : plainWords(lastText),
      href: `/sessions/${encodeURIComponent(id)}`,
    });
  }
  return found;
}
