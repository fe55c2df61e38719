import { fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';
import type { Outbox } from '../../outbox/outbox';
import type { Cursor } from '../../outbox/statements';

/** What a runner must know of a session that an earlier one ran, in the outbox's file. */
export interface AcpMemory {
  sessionId: string;
  /** The agent's own name for it; null until it has one. */
  nativeId: string | null;
  /** What goes, or went, before the first message to that; null: nothing. */
  note: string | null;
  cwd: string;
  /** The agent's process, while it runs. */
  pid: number | null;
  /** The runner is at it. Still set at a start: the one before was killed. */
  running: boolean;
}

const SESSION = 'acp-session:';

export function memoryCursor(memory: AcpMemory): Cursor {
  return { name: `${SESSION}${memory.sessionId}`, value: JSON.stringify(memory) };
}

/** All sessions this outbox has carried. */
export async function readMemories(outbox: Pick<Outbox, 'cursors'>): Promise<AcpMemory[]> {
  return [...(await outbox.cursors(SESSION)).values()].flatMap((value) => {
    const { sessionId, nativeId, note, cwd, pid, running } = fieldsOf(parseJson(value));
    const id = textOf(sessionId);
    if (id === null) return [];
    return {
      sessionId: id,
      nativeId: textOf(nativeId),
      note: textOf(note),
      cwd: textOf(cwd) ?? '.',
      pid: typeof pid === 'number' ? pid : null,
      running: running === true,
    };
  });
}

/** The session that a name means: the dashboard's, or the agent's own. */
export function recall(memories: readonly AcpMemory[], name: string): AcpMemory | undefined {
  return memories.find(({ sessionId }) => sessionId === name) ?? memories.find(({ nativeId }) => nativeId === name);
}
