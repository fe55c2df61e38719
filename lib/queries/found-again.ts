import type { Sight } from '@/lib/access/sight';
import { type LogFilter, matchesLine, searchesText } from '@/lib/projections/log-filter';
import type { InboxList } from '@/lib/protocol/inbox';
import { inboxText, sessionText } from '@/lib/protocol/list-search';
import type { LogLine, SessionList } from '@/lib/protocol/read-models';
import { redactLine } from '@/lib/redaction/redact-model';
import { redactValue } from '@/lib/redaction/redact-value';

/**
 * What a search found, to a reader who is told no secrets: only what is found in what that reader is shown. Otherwise
 * whoever searches for one letter after the other would be told a secret by what is found. Counts are of what is listed.
 */

type Reader = Pick<Sight, 'redacts'>;

export function linesFoundAgain(lines: LogLine[], filter: LogFilter, { redacts }: Reader): LogLine[] {
  if (!redacts || !searchesText(filter)) return lines;
  return lines.filter((line) => matchesLine(filter, redactLine(line)));
}

export function sessionsFoundAgain(list: SessionList, words: readonly string[], { redacts }: Reader): SessionList {
  if (!redacts || words.length === 0) return list;
  const sessions = list.sessions.filter((session) => hasAll(sessionText(shown(session)), words));
  return { ...list, sessions, counts: countsOf(list.counts, sessions, ({ state }) => state) };
}

export function itemsFoundAgain(list: InboxList, words: readonly string[], { redacts }: Reader): InboxList {
  if (!redacts || words.length === 0) return list;
  const items = list.items.filter((item) => hasAll(inboxText(shown(item)), words));
  return { ...list, items, counts: countsOf(list.counts, items, ({ kind }) => kind) };
}

function shown<Row>(row: Row): Row {
  return redactValue(row, { redacted: 0 }, false) as Row;
}

function hasAll(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(word));
}

function countsOf<Name extends string, Row>(
  counts: Record<Name, number>,
  rows: readonly Row[],
  nameOf: (row: Row) => Name,
): Record<Name, number> {
  const next = { ...counts };
  for (const name of Object.keys(counts) as Name[]) next[name] = rows.filter((row) => nameOf(row) === name).length;
  return next;
}
