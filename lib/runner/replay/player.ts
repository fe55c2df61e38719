import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { EmittedEvent } from '../adapters/wire';
import { type Recording, recordedKind } from './recording';

/**
 * Feeds a recording through the adapter, at the speed at which it was recorded or another.
 *
 * Ordering: line by line; what a line gives is handed over together with the place behind it.
 * Failure: a player that was killed is followed by one that reads the lines before the cursor again, to bring the
 * adapter where it stood, and hands over only what comes after. For that, run ids must come out the same: they are
 * derived from the session and the recording.
 */
export interface Playback {
  recording: Recording;
  sessionId: string;
  /** The line to go on with; those before have been handed over. */
  fromLine: number;
  /** 1 is as recorded, Infinity without any wait. */
  speed: number;
  /** What lies before this time (ms into the recording) is handed over at once, with the times it would have had. */
  skipToMs?: number;
  signal: AbortSignal;
  /**
   * @param line everything before it has been handed over with this
   * @returns once it is stored
   */
  emit: (events: readonly EmittedEvent[], line: number) => Promise<void>;
  /** What an earlier player has handed over. */
  onSkipped?: (events: readonly EmittedEvent[]) => void;
  onLine?: (line: number) => void;
}

/** @returns whether it came to the end, rather than to the signal */
export async function play(playback: Playback): Promise<boolean> {
  const { recording, sessionId, fromLine, speed, signal, emit, onSkipped, onLine } = playback;
  const { kind, lines, hash } = recording;
  const reader = recordedKind(kind).newReader({
    sessionOf: sessionsOf(sessionId),
    newRunId: runIds(sessionId, hash),
  });
  const skippedMs = Math.max(playback.skipToMs ?? 0, lines[fromLine]?.at ?? 0);
  const startedAt = Date.now() - skippedMs / speed;
  const timeOf = (dueAt: number) =>
    speed === Number.POSITIVE_INFINITY ? Date.now() : Math.round(Math.min(dueAt, Date.now()));
  // The reader's own clock runs as the recording's: what silence says comes where it came then.
  const since = (at: number) => startedAt + at;
  for (const [at, line] of lines.entries()) {
    const outputs: EmittedEvent[] = [];
    for (;;) {
      const { dueAt } = reader;
      if (dueAt === null || dueAt > since(line.at)) break;
      outputs.push(...reader.elapsed(dueAt));
    }
    const dueAt = startedAt + line.at / speed;
    if (at >= fromLine) await until(dueAt, signal);
    if (signal.aborted) return false;
    outputs.push(...reader.read(line, since(line.at)));
    // A recording that was cut off ends with its process, or the session would look alive for ever.
    const isLast = at === lines.length - 1;
    if (isLast) outputs.push(...reader.ended({ reason: 'the recording ends here' }, since(line.at)));
    const now = timeOf(dueAt);
    const told = outputs.map((one) => ({
      ...one,
      occurredAt: Math.min(now, timeOf(dueAt - (since(line.at) - one.occurredAt) / speed)),
    }));
    if (at < fromLine) {
      onSkipped?.(told);
      continue;
    }
    if (told.length > 0 || isLast) await emit(told, at + 1);
    onLine?.(at + 1);
  }
  return true;
}

/** The first session of a recording is the one that was asked for; the others are named after it. */
function sessionsOf(sessionId: string): (nativeId: string) => string {
  const known = new Map<string, string>();
  return (nativeId) => {
    const session = known.get(nativeId) ?? (known.size === 0 ? sessionId : `${sessionId}-${known.size + 1}`);
    known.set(nativeId, session);
    return session;
  };
}

function runIds(sessionId: string, hash: string): () => string {
  const prefix = createHash('sha256').update(`${sessionId}\n${hash}`).digest('hex').slice(0, 12);
  let count = 0;
  return () => `${prefix}-${++count}`;
}

/** Resolves at `time`, or as soon as the signal fires. */
export async function until(time: number, signal: AbortSignal): Promise<void> {
  const ms = time - Date.now();
  // -Infinity and NaN as well: without a speed limit nothing is ever in the future
  if (ms > 0) await pause(ms, undefined, { signal }).catch(() => undefined);
}
