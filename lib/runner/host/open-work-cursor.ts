import { isNothing, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { Cursor } from '../outbox/statements';

const CURSOR = 'open-work:';

/** Stored with the events that made it so: after a kill the next runner can say how it all ended. */
export function openWorkCursor(sessionId: string, open: OpenWork): Cursor {
  return { name: CURSOR + sessionId, value: isNothing(open) ? null : JSON.stringify(open) };
}

/** By session: what the processes before this one left open. */
export async function readOpenWork(outbox: {
  cursors: (prefix: string) => Promise<Map<string, string>>;
}): Promise<Map<string, OpenWork>> {
  const stored = await outbox.cursors(CURSOR);
  return new Map([...stored].map(([name, value]) => [name.slice(CURSOR.length), JSON.parse(value) as OpenWork]));
}
