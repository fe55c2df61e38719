import { createHash } from 'node:crypto';
import { ClaudeAdapter } from '@/lib/adapters/claude/claude-adapter';
import { feedRecordingLine } from '@/lib/adapters/claude/recording';
import type { EventJournal } from '@/lib/runner/logger/event-journal';
import type { Outbox, OutgoingRecord } from '@/lib/runner/outbox/outbox';
import type { Recording } from './recording';

/**
 * Feeds a recording through the adapter into the outbox, at the speed at which it was recorded or another.
 *
 * Ordering: line by line; what a line gives is stored together with the place behind it (`cursor`).
 * Failure: a player that was killed is followed by one that reads the lines before the cursor again, to bring the
 * adapter where it stood, and hands over only what comes after. For that, run ids must come out the same: they are
 * derived from the session and the recording.
 */
export interface Playback {
  recording: Recording;
  outbox: Outbox;
  sessionId: string;
  agentId: string;
  /** The line to go on with; those before have been handed over. */
  fromLine: number;
  /** 1 is as recorded, Infinity without any wait. */
  speed: number;
  /** What lies before this time (ms into the recording) is handed over at once, with the times it would have had. */
  skipToMs?: number;
  signal: AbortSignal;
  /** The cursor to store once everything before `line` is handed over. */
  cursor: (line: number) => { name: string; value: string };
  onLine?: (line: number) => void;
  /** Told of what is handed over, in the tick in which it is. */
  journal?: EventJournal;
}

/** @returns whether it came to the end, rather than to the signal */
export async function play(playback: Playback): Promise<boolean> {
  const { recording, outbox, sessionId, agentId, fromLine, speed, signal, cursor } = playback;
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
      playback.journal?.learn(outputs);
      continue;
    }
    playback.journal?.tell(outputs);
    const records = outputs.map(
      ({ occurredAt, event }): OutgoingRecord => ({ kind: 'event', agentId, sessionId, occurredAt, event }),
    );
    if (records.length > 0 || isLast) await outbox.enqueue(records, cursor(at + 1));
    playback.onLine?.(at + 1);
  }
  return true;
}

function runIds(sessionId: string, hash: string): () => string {
  const prefix = createHash('sha256').update(`${sessionId}\n${hash}`).digest('hex').slice(0, 12);
  let count = 0;
  return () => `${prefix}-${++count}`;
}

/** Resolves at `time`, or as soon as the signal fires. */
export function until(time: number, signal: AbortSignal): Promise<void> {
  const ms = time - Date.now();
  // -Infinity and NaN as well: without a speed limit nothing is ever in the future
  if (!(ms > 0) || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
