import { listOf } from '@interlude/protocol/fields';
import { entryOf, type NativeEvent } from '../../adapters/opencode/native-event';
import type { SessionTree } from '../../adapters/opencode/subagents';
import type { OpencodeServer } from './opencode-server';

/** An entry of a session's history, as the server tells it. */
export interface HistoryEntry {
  raw: unknown;
  event: NativeEvent;
}

/** The server names each session in one condition, of which its database takes a thousand. */
const MAX_NAMED = 900;
const ALL = Number.MAX_SAFE_INTEGER;
const ANSWER_WITHIN_MS = 60_000;

/**
 * What happened in sessions behind the places that are known, in its order.
 *
 * Failure: the server tells of every session that is not named in full. With more sessions than can be named, and by a
 * server that tells no history, nothing is read.
 *
 * @param after by session, the last place that is known; -1 for its whole history
 * @returns null where no history can be had
 */
export async function readHistory(
  server: OpencodeServer,
  tree: SessionTree,
  after: ReadonlyMap<string, number>,
): Promise<HistoryEntry[] | null> {
  if (after.size === 0) return [];
  const named: Record<string, number> = {};
  for (const { id } of tree.all) named[id] = ALL;
  for (const [id, place] of after) {
    if (place < 0) delete named[id];
    else named[id] = place;
  }
  if (Object.keys(named).length > MAX_NAMED) return null;
  const { status, body } = await server.request('POST', '/sync/history', named, ANSWER_WITHIN_MS);
  if (status !== 200 || !Array.isArray(body)) return null;
  return inOrder(listOf(body));
}

/** Within a session by place; of several sessions as their ids say, which begin with the time. */
function inOrder(body: readonly unknown[]): HistoryEntry[] {
  const entries = body.flatMap((raw) => {
    const event = entryOf(raw);
    return event === null || event.session === null ? [] : [{ raw, event }];
  });
  const bySession = new Map<string | null, HistoryEntry[]>();
  for (const entry of entries) {
    const of = bySession.get(entry.event.session);
    if (of === undefined) bySession.set(entry.event.session, [entry]);
    else of.push(entry);
  }
  for (const of of bySession.values()) of.sort((a, b) => (a.event.seq ?? 0) - (b.event.seq ?? 0));
  const next = new Map<string | null, number>();
  return entries
    .toSorted((a, b) => ((a.event.id ?? '') < (b.event.id ?? '') ? -1 : 1))
    .flatMap(({ event: { session } }) => {
      const at = next.get(session) ?? 0;
      next.set(session, at + 1);
      return bySession.get(session)?.[at] ?? [];
    });
}
