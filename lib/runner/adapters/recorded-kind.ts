import type { ToldEvent, WireAdapter, WireAdapterOptions, WireEnd } from './wire';

/** A line of a recording, of whatever kind of agent: its fields, besides the time, are those of its kind. */
export interface RecordedLine {
  /** Milliseconds since the start. */
  at: number;
  fields: Record<string, unknown>;
}

/** How the recordings of one kind of agent are read. */
export interface RecordedKind {
  /** Whether the line can only be of this kind. */
  recognises(line: RecordedLine): boolean;
  newReader(options: WireAdapterOptions): RecordingReader;
}

/** One recording, read line by line from its beginning. */
export interface RecordingReader extends Omit<WireAdapter, 'read'> {
  read(line: RecordedLine, now: number): ToldEvent[];
}

/** Of an adapter whose recordings have a frame a line: `{"dir","at","msg"}`, and `{"exit"}` where its process ended. */
export function frameReader(adapter: WireAdapter): RecordingReader {
  return {
    get dueAt() {
      return adapter.dueAt;
    },
    elapsed: (now) => adapter.elapsed(now),
    ended: (end, now) => adapter.ended(end, now),
    read({ fields: { dir, msg } }, now) {
      const end = exitOf(msg);
      if (end !== null) return adapter.ended(end, now);
      return dir === 'in' || dir === 'out' ? adapter.read({ dir, msg }, now) : [];
    },
  };
}

function exitOf(msg: unknown): WireEnd | null {
  const exit = typeof msg === 'object' && msg !== null && 'exit' in msg ? msg.exit : null;
  if (typeof exit !== 'object' || exit === null) return null;
  const { code, signal, s, reason, isAsked, goesOn } = exit as Record<string, unknown>;
  const by = typeof signal === 'string' ? signal : typeof s === 'string' ? s : null;
  const exitCode = typeof code === 'number' ? code : null;
  // As a runner records it: all of how it ended.
  if (typeof reason === 'string') {
    const more = { ...(isAsked === true ? { isAsked } : {}), ...(typeof goesOn === 'string' ? { goesOn } : {}) };
    return { reason, exitCode, signal: by, ...more };
  }
  // Whoever recorded it was done.
  if (by === 'SIGTERM' || by === 'SIGINT') return { reason: `stopped by ${by}`, isAsked: true };
  const how = by !== null ? `terminated by signal ${by}` : exitCode === null ? 'ended' : `exited with code ${exitCode}`;
  return { reason: how, exitCode, signal: by };
}
