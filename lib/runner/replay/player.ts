import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ClaudeAdapter } from '@/lib/adapters/claude/claude-adapter';
import { feedRecordingLine } from '@/lib/adapters/claude/recording';
import type { TimedEvent } from '@/lib/protocol/ag-ui';
import type { Recording } from './recording';

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
  emit: (events: readonly TimedEvent[], line: number) => Promise<void>;
  /** What an earlier player has handed over. */
  onSkipped?: (events: readonly TimedEvent[]) => void;
  onLine?: (line: number) => void;
}

/** @returns whether it came to the end, rather than to the signal */
export async function play(playback: Playback): Promise<boolean> {
  const { recording, sessionId, fromLine, speed, signal, emit, onSkipped, onLine } = playback;
  const adapter = new ClaudeAdapter({ sessionId, newRunId: runIds(sessionId, recording.hash) });
  const { lines } = recording;
  const skippedMs = Math.max(playback.skipToMs ?? 0, lines[fromLine]?.t ?? 0);
  const startedAt = Date.now() - skippedMs / speed;
  for (const [at, line] of lines.entries()) {
    const dueAt = startedAt + line.t / speed;
    if (at >= fromLine) await until(dueAt, signal);
    if (signal.aborted) return false;
    const now = speed === Number.POSITIVE_INFINITY ? Date.now() : Math.round(Math.min(dueAt, Date.now()));
    const outputs = feedRecordingLine(adapter, line, now);
    // A recording that was cut off ends with its process, or the session would look alive for ever.
    const isLast = at === lines.length - 1;
    if (isLast) outputs.push(...adapter.ended(now, { reason: 'the recording ends here' }));
    if (at < fromLine) {
      onSkipped?.(outputs);
      continue;
    }
    if (outputs.length > 0 || isLast) await emit(outputs, at + 1);
    onLine?.(at + 1);
  }
  return true;
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
