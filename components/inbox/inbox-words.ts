import { plural } from '@/components/ui/duration';
import type { GlyphName } from '@/components/ui/glyph';
import { plainWords } from '@/components/ui/plain-words';
import { inQuotes } from '@/components/ui/verbatim';
import type { InboxItem, InboxKind } from '@/lib/protocol/inbox';

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

/** What an item says: in quotes what its agent says, else words of ours. */
export function itemTitle({ kind, title, count }: InboxItem): string {
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
