import type { InboxItem } from '@interlude/protocol/inbox';
import type { SessionSummary } from '@interlude/protocol/read-models';
import type { InboxKind } from '@interlude/protocol/vocabulary';
import { sessionTitle } from '@/components/sessions/session-labels';
import { plural } from '@/components/ui/duration';
import type { GlyphName } from '@/components/ui/glyph';
import { toPlainText } from '@/components/ui/plain-text';
import { inQuotes } from '@/components/ui/verbatim';

/** Filters of the inbox. */
export const KIND_WORD: Record<InboxKind, string> = {
  permission: 'Permissions',
  question: 'Questions',
  'overdue-reply': 'Overdue replies',
  failure: 'Failures',
  undelivered: 'Results not delivered',
  'lost-contact': 'Lost contact',
  'hook-failure': 'Failed hooks',
  'delivery-gap': 'Missing records',
  parked: 'Unassigned records',
};

/** A further reason in the row of a session or agent. */
export const REASON_WORD: Record<InboxKind, string> = {
  permission: 'a permission request',
  question: 'a question',
  'overdue-reply': 'an overdue reply',
  failure: 'a failure',
  undelivered: 'a result not delivered',
  'lost-contact': 'lost contact',
  'hook-failure': 'failed hooks',
  'delivery-gap': 'missing records',
  parked: 'unassigned records',
};

export const KIND_GLYPH: Record<InboxKind, GlyphName> = {
  permission: 'waiting',
  question: 'waiting',
  'overdue-reply': 'waiting',
  failure: 'failed',
  undelivered: 'waiting',
  'lost-contact': 'lost',
  'hook-failure': 'failed',
  'delivery-gap': 'lost',
  parked: 'unknown',
};

/**
 * Title of an item's session; null if it is about the agent.
 *
 * @param session the session's row, if it is loaded
 */
export function ownerTitle(
  { sessionId, session: known }: InboxItem,
  session: SessionSummary | undefined,
): string | null {
  if (sessionId === null) return null;
  return session === undefined
    ? (known?.name ?? sessionTitle({ id: sessionId, title: known?.title ?? null }))
    : sessionTitle(session);
}

/** Title of an item. Only the agent's words are quoted. */
export function itemTitle({ kind, title, count, sessionId }: InboxItem): string {
  const words = toPlainText(title ?? '');
  const quoted = words === '' ? '' : inQuotes(words);
  switch (kind) {
    case 'hook-failure':
      return count === 1
        ? quoted || 'A hook failed'
        : `${plural(count, 'failure')}${quoted === '' ? '' : `, most recently ${quoted}`}`;
    case 'delivery-gap':
      return `${plural(count, 'record')} lost or rejected`;
    case 'parked':
      return `${plural(count, 'record')} without a session`;
    case 'undelivered': {
      // `npm test: failed, exit code 3`: quotes the task's name, which may contain colons
      const end = words.lastIndexOf(': ');
      if (end >= 0) return inQuotes(words.slice(0, end)) + words.slice(end);
      return quoted || DEFAULT_TITLE[kind];
    }
    case 'lost-contact':
      // the server's words for a session, the runner's words for an agent
      return (sessionId === null ? quoted : words) || DEFAULT_TITLE[kind];
    case 'failure':
      return exitTitle(words) ?? (quoted || DEFAULT_TITLE[kind]);
    default:
      return quoted || DEFAULT_TITLE[kind];
  }
}

/** `Exit code 137`, `Killed by SIGKILL: “out of memory”`: only the agent's reason is quoted. Null for other failures. */
function exitTitle(words: string): string | null {
  const [, how, why] = /^(exit code -?\d+|killed by \w+)(?:: (.+))?$/s.exec(words) ?? [];
  if (how === undefined) return null;
  return `${how[0]?.toUpperCase()}${how.slice(1)}${why === undefined ? '' : `: ${inQuotes(why)}`}`;
}

/** The items, with equal ones in one entry. Each request is its own. */
export function foldEqual(items: readonly InboxItem[]): { item: InboxItem; count: number }[] {
  const folded = new Map<string, { item: InboxItem; count: number }>();
  for (const item of items) {
    const key = item.request === null && item.messageId === null ? `${item.kind} ${itemTitle(item)}` : item.id;
    const known = folded.get(key);
    if (known === undefined) folded.set(key, { item, count: 1 });
    else known.count += 1;
  }
  return [...folded.values()];
}

const DEFAULT_TITLE = {
  permission: 'The agent asks for permission',
  question: 'The agent asks a question',
  'overdue-reply': 'Message without text',
  failure: 'Failed for an unknown reason',
  undelivered: 'A task ended, but its agent wasn’t notified',
  'lost-contact': 'No signal',
} as const;
