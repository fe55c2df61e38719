import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { EVERYTHING } from '@interlude/protocol/scope';
import { encodeFrame, HEARTBEAT } from '@interlude/protocol/sse';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { PLAIN_DIGESTS } from '@/lib/server/access/shown-digests';
import type { OpenStream, Sink } from '@/lib/server/access/streamed-response';
import { answerStream } from '@/lib/server/agui/answer-stream';
import type { ClientEvent } from '@/lib/server/agui/client-events';
import type { RunProjectorOptions } from '@/lib/server/agui/run-projector';
import type { Subscription } from '@/lib/server/fan-out/fan-out';
import { undeclaredFieldIn } from '@/tests/support/agui-verifier';
import { rejectionOf } from '../../support/agui-verifier';
import { projectAskedRun } from '../../support/run-projector';

/** A client's stream over a log that the test writes. */
async function opened(asked: Partial<RunProjectorOptions> = {}, followMs: number | null = null) {
  const follows = followMs === null ? 'no' : 'while-tasks-run';
  const { projector, stream } = projectAskedRun({ follows, ...asked });
  const logs: { sink: Sink; from: number | null; isLeft: boolean }[] = [];
  const subscribe = async ({ after: from, signal }: Subscription): Promise<OpenStream> => {
    return (sink) => {
      const log = { sink, from, isLeft: false };
      logs.push(log);
      const disconnected = () => {
        log.isLeft = true;
      };
      signal.addEventListener('abort', disconnected);
      return { drained: () => undefined, disconnected };
    };
  };
  const reader = { text: '', isEnded: false, hungUp: null as unknown };
  const aborted = new AbortController();
  const open = await answerStream({
    fanOut: { subscribe },
    sessionId: 's',
    from: 7,
    turnPosition: async () => 3,
    stream,
    projector,
    followMs,
    maxMs: null,
    client: '',
    signal: aborted.signal,
    scope: EVERYTHING,
    digests: PLAIN_DIGESTS,
    whenOver: () => () => {},
  });
  const source = open({
    waiting: 0,
    write: (chunk) => {
      reader.text += new TextDecoder().decode(chunk);
    },
    end: () => {
      reader.isEnded = true;
    },
    hangUp: (why) => {
      reader.hungUp = why;
    },
  });
  let position = 7;
  const last = () => logs.at(-1) as (typeof logs)[number];
  const write = (text: string) => last().sink.write(new TextEncoder().encode(text));
  const said = (): ClientEvent[] =>
    reader.text.split('\n\n').flatMap((block) => (block.startsWith('data: ') ? [JSON.parse(block.slice(6))] : []));
  return {
    reader,
    logs,
    source,
    abort: () => aborted.abort(),
    write,
    said,
    /** In one chunk. */
    tell: (...events: AgUiEvent[]) =>
      write(
        events
          .map((event) => {
            position += 1;
            const data = { sessionId: 's', agentId: 'a', seq: position, occurredAt: 1, receivedAt: 1, event };
            return encodeFrame({ id: String(position), event: 'session-event', data });
          })
          .join(''),
      ),
    caughtUp: () => write(encodeFrame({ event: 'up-to-date', data: { position: '7' } })),
    bye: (reason: 'planned' | 'slow' | 'shutdown') => {
      write(encodeFrame({ event: 'bye', data: { reason } }));
      last().sink.end();
    },
    types: () => {
      expect([rejectionOf(said(), '1.0'), undeclaredFieldIn(said())]).toEqual([null, null]);
      return said().map(({ type, runId, code }) => [type, runId ?? code].filter(Boolean).join(' '));
    },
  };
}

const begins: AgUiEvent = { type: 'RUN_STARTED', runId: 'r1', metadata: { interlude: { userMessageIds: ['u1'] } } };
const ends: AgUiEvent = { type: 'RUN_FINISHED', runId: 'r1' };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a stream', () => {
  test('ends after its run, unsubscribes, and forwards heartbeats', async () => {
    const answer = await opened();
    answer.write(HEARTBEAT);
    expect(answer.reader.text).toBe(HEARTBEAT);
    answer.tell(begins);
    expect(answer.reader.isEnded).toBe(false);
    answer.tell(ends);
    expect(answer.types()).toEqual(['RUN_STARTED asked', 'RUN_FINISHED asked']);
    expect([answer.reader.isEnded, answer.logs[0]?.isLeft]).toEqual([true, true]);
  });

  test.each(['planned', 'slow', 'shutdown'] as const)(
    'that the server ends (%s) ends with the reason, in and outside of a run',
    async (reason) => {
      const waiting = await opened();
      waiting.bye(reason);
      expect([waiting.types(), waiting.reader.isEnded]).toEqual([[`RUN_ERROR stream_${reason}`], true]);
      const running = await opened();
      running.tell(begins, { type: 'TEXT_MESSAGE_START', messageId: 'm1' });
      running.bye(reason);
      expect(running.types()).toEqual([
        'RUN_STARTED asked',
        'TEXT_MESSAGE_START',
        'TEXT_MESSAGE_END',
        `RUN_ERROR stream_${reason}`,
      ]);
      expect(running.reader.isEnded).toBe(true);
    },
  );

  test('ends with an error when its log breaks off', async () => {
    const answer = await opened();
    answer.tell(begins);
    answer.logs[0]?.sink.hangUp('the disk is gone');
    expect(answer.types()).toEqual(['RUN_STARTED asked', 'RUN_ERROR log_unavailable']);
  });

  test('is broken off when nothing reads it', async () => {
    const answer = await opened();
    answer.tell(begins, ends);
    expect(answer.reader.hungUp).toBeNull();
    vi.advanceTimersByTime(10_000);
    expect(answer.reader.hungUp).not.toBeNull();
  });

  test.each(['gone', 'abort'] as const)(
    'whose reader has left (%s) unsubscribes and sends nothing more',
    async (how) => {
      const answer = await opened();
      answer.tell(begins);
      if (how === 'gone') answer.source.disconnected();
      else answer.abort();
      answer.tell(ends);
      expect([answer.types(), answer.logs[0]?.isLeft]).toEqual([['RUN_STARTED asked'], true]);
      vi.advanceTimersByTime(3_600_000);
      expect(answer.reader.hungUp).toBeNull();
    },
  );

  test('reads the turn that answered the message again', async () => {
    const answer = await opened({ openTurnId: 'r0' });
    answer.tell({ type: 'RUN_FINISHED', runId: 'r0', metadata: { interlude: { userMessageIds: ['u1'] } } });
    await vi.waitFor(() => expect(answer.logs).toHaveLength(2));
    expect([answer.logs[0]?.isLeft, answer.logs[1]?.from]).toEqual([true, 2]);
    answer.tell({ type: 'RUN_STARTED', runId: 'r0' }, { type: 'RUN_FINISHED', runId: 'r0' });
    expect(answer.types()).toEqual(['RUN_STARTED asked', 'RUN_FINISHED asked']);
  });
});

describe('time', () => {
  test('ends the wait for an absent runner, and explains that the message stays queued', async () => {
    const answer = await opened({ isAway: true });
    answer.caughtUp();
    vi.advanceTimersByTime(59_000);
    expect(answer.said()).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect(answer.types()).toEqual(['RUN_ERROR agent_away']);
    expect(answer.said()[0]?.message).toContain('stays queued');
  });

  test('does not end it once the agent reports', async () => {
    const answer = await opened({ isAway: true });
    answer.caughtUp();
    vi.advanceTimersByTime(59_000);
    answer.tell(begins);
    vi.advanceTimersByTime(600_000);
    answer.tell(ends);
    expect(answer.types()).toEqual(['RUN_STARTED asked', 'RUN_FINISHED asked']);
  });

  test('ends following after an idle time, not while a task runs', async () => {
    const answer = await opened({}, 600_000);
    answer.caughtUp();
    const task = (name: string): AgUiEvent => ({ type: 'CUSTOM', name, value: { task_id: 't1' } });
    answer.tell(begins, task('task:started'), ends);
    vi.advanceTimersByTime(300_000);
    expect(answer.reader.isEnded).toBe(false);
    answer.tell(task('task:completed'));
    vi.advanceTimersByTime(4_000);
    expect(answer.reader.isEnded).toBe(false);
    vi.advanceTimersByTime(1_000);
    expect(answer.reader.isEnded).toBe(true);
    expect(answer.types().at(-1)).toMatch(/^RUN_FINISHED/);
  });

  test('limits following, and lets the open run end', async () => {
    const answer = await opened({}, 60_000);
    answer.caughtUp();
    answer.tell(begins);
    vi.advanceTimersByTime(60_000);
    expect(answer.reader.isEnded).toBe(false);
    answer.tell({ type: 'CUSTOM', name: 'task:started', value: { task_id: 't1' } }, ends);
    expect(answer.types().at(-1)).toBe('RUN_FINISHED asked');
    expect(answer.reader.isEnded).toBe(true);
  });
});
