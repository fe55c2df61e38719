import { COUNTED_KINDS, DONE_ONCE_SEEN, type InboxKind } from '@interlude/protocol/inbox-kinds';
import { stringifyWellFormed } from '@interlude/protocol/json';
import { inboxText } from '@interlude/protocol/list-search';
import type { InStatement } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { inPieces } from '@/db/json-pieces';
import type { InboxChange } from './batch-rows';

type Change<Kind extends InboxChange['kind']> = InboxChange & { kind: Kind };

/**
 * The statements that bring inbox items up to date, without reading any of them.
 *
 * Ordering: what comes up, then what is done, then marks. No batch both opens an item and ends it.
 */
export function* inboxStatements(changes: readonly InboxChange[]): Generator<InStatement> {
  const ofKind = <Kind extends InboxChange['kind']>(kind: Kind) =>
    changes.filter((change): change is Change<Kind> => change.kind === kind);
  yield* inPieces(ofKind('open'), (json) => ({ sql: OPEN, args: [json] }), opened);
  yield* inPieces(
    ofKind('done'),
    (json) => ({ sql: DONE, args: [json] }),
    ({ id, at, position, isHidden }) => [columnText(id), at, position, isHidden ? 1 : 0],
  );
  yield* inPieces(
    ofKind('marked'),
    (json) => ({ sql: MARK, args: [json] }),
    ({ id, marks: { seenAt, snoozedUntil, claim, doneAt }, position }) => {
      const claimed = claim === null ? null : stringifyWellFormed(claim);
      return [columnText(id), seenAt, snoozedUntil, claimed, doneAt, position];
    },
  );
}

function opened({ attention, agentId, sessionId, at, position }: Change<'open'>) {
  const { id, kind, version, ...body } = attention;
  const words = inboxText({ agentId, sessionId, title: body.title });
  const of = [columnText(agentId), sessionId === null ? null : columnText(sessionId)];
  return [columnText(id), kind, ...of, version, at, stringifyWellFormed(body), columnText(words), position];
}

const quoted = (kinds: readonly InboxKind[]) => kinds.map((kind) => `'${kind}'`).join(', ');
const COUNTED = quoted(COUNTED_KINDS);
/**
 * Whether it comes up again: then nobody has seen it yet. What was only out of sight, as what is missing of an archived
 * session is, comes back as it was; so does a failure whose session was something else meanwhile, and what is counted
 * where it is no more than was known.
 */
const IS_NEWS = `iif(inbox.kind IN (${COUNTED}), excluded.version > inbox.version, excluded.version <> inbox.version)`;
/** A gap that was seen is done, though as much is missing as before. */
const IS_SEEN = `inbox.kind IN (${quoted(DONE_ONCE_SEEN)}) AND inbox.seen_at IS NOT NULL`;
const unlessNews = (column: string) => `${column} = iif(${IS_NEWS}, NULL, inbox.${column})`;
const ifNews = (column: string) => `${column} = iif(${IS_NEWS}, excluded.${column}, inbox.${column})`;

/** What is said of a failure stays until another one is told. */
const OPEN = `INSERT INTO inbox
    (id, kind, agent_id, session_id, version, since, body, words, position, opened_position, updated_position)
  SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>8,
    value->>8
  FROM json_each(?1) WHERE true
  ON CONFLICT (id) DO UPDATE SET ${['since', 'opened_position'].map(ifNews).join(', ')},
    ${['seen_at', 'snoozed_until', 'claim'].map(unlessNews).join(', ')},
    done_at = iif(NOT (${IS_NEWS}) AND ${IS_SEEN}, inbox.done_at, NULL),
    version = excluded.version,
    body = iif(inbox.kind = 'hook-failure' AND excluded.body->>'$.title' IS NULL,
      json_set(excluded.body, '$.title', inbox.body->>'$.title'), excluded.body),
    words = excluded.words, updated_position = excluded.updated_position`;

/** What is counted is counted anew from here on, unless it is only out of sight. */
const ANEW = `kind IN (${COUNTED}) AND NOT value->>3`;
const DONE = `UPDATE inbox SET done_at = ifnull(done_at, value->>1), updated_position = value->>2,
    version = iif(${ANEW}, 0, version)
  FROM json_each(?1)
  WHERE inbox.id = value->>0 AND (done_at IS NULL OR (${ANEW} AND version > 0))`;

const MARK = `UPDATE inbox SET seen_at = value->>1, snoozed_until = value->>2, claim = value->>3, done_at = value->>4,
  updated_position = value->>5 FROM json_each(?1) WHERE inbox.id = value->>0`;
