import type { InboxItem } from '@interlude/protocol/inbox';
import type { InboxKind } from '@interlude/protocol/vocabulary';
import { plural } from '@/components/ui/duration';
import type { GlyphName } from '@/components/ui/glyph';
import { plainWords } from '@/components/ui/plain-words';
import { inQuotes } from '@/components/ui/verbatim';

/** The headings of the inbox. */
export const KIND_WORD: Record<InboxKind, string> = {
  permission: 'Permissions',
  question: 'Questions',
  'overdue-reply': 'Overdue replies',
  failure: 'Failures',
  undelivered: 'Results not delivered',
  'lost-contact': 'Lost contact',
  'hook-failure': 'Failed hooks',
  'delivery-gap': 'Missing records',
  parked: 'Parked records',
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

/** Title of an item: words of its agent in quotes, words of ours without. */
export function itemTitle({ kind, title, count, sessionId }: InboxItem): string {
  const words = plainWords(title ?? '');
  const said = words === '' ? '' : inQuotes(words);
  switch (kind) {
    case 'hook-failure':
      return count === 1
        ? said || 'A hook failed'
        : `${plural(count, 'failure')}${said === '' ? '' : `, the last: ${said}`}`;
    case 'delivery-gap':
      return `${plural(count, 'record')} lost or in quarantine`;
    case 'parked':
      return `${plural(count, 'record')} without a session`;
    case 'undelivered': {
      // `npm test: failed, exit code 3`: the task's name is the agent's, and our part has no colon
      const end = words.lastIndexOf(': ');
      if (end >= 0) return inQuotes(words.slice(0, end)) + words.slice(end);
      return said || NOTHING_SAID[kind];
    }
    case 'lost-contact':
      // of a session, the server says what happened; of an agent, its runner does
      return (sessionId === null ? said : words) || NOTHING_SAID[kind];
    default:
      return said || NOTHING_SAID[kind];
  }
}

const NOTHING_SAID = {
  permission: 'The agent asks for a permission',
  question: 'The agent asks',
  'overdue-reply': 'A message without words',
  failure: 'It failed without saying why',
  undelivered: 'A task has ended, and its agent does not know',
  'lost-contact': 'Nothing is heard of it any more',
} as const;
