import { fileURLToPath } from 'node:url';
import { NO_OBLIGATIONS } from '@interlude/protocol/projections/obligations';
import { type EventEntry, NO_PLACES } from '@interlude/protocol/projections/placement';
import { placeEvents } from '@interlude/protocol/projections/turns';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import {
  DemoSource,
  demoSessionId,
  FLEET,
  RestLimiter,
  restAfter,
  withNewIds,
} from '@interlude/runner/cli/demo/demo-source';
import { play, type Recording, readRecording } from '@interlude/runner/cli/recording';
import { expect, test } from 'vitest';
import { foldObligations } from '@/tests/support/memory-log';
import { MemorySourceContext } from '../../support/source-contract';

const folder = fileURLToPath(new URL('../../../lib/runner/cli/demo/recordings/', import.meta.url));
const FIRST_MS = 10_000;

/** When a task ends and wakes its agent, in milliseconds after the demo's start. */
async function wakings(agent: (typeof FLEET)[number]): Promise<number[]> {
  const { lines } = await readRecording(`${folder}${agent.recordings[0]}.jsonl`);
  const kinds = lines.map(({ at, fields: { msg } }) => ({
    t: at - agent.beginsAtMs,
    subtype: (msg as { subtype?: string })?.subtype,
  }));
  return kinds.flatMap((line, index) => {
    const isEnd = line.subtype === 'task_notification';
    const next = kinds.slice(index + 1).find(({ subtype }) => subtype === 'init');
    return isEnd && next && next.t - line.t < 1_000 ? [line.t] : [];
  });
}

test('has at least six agents with unique names', () => {
  expect(new Set(FLEET.map((agent) => agent.agentId)).size).toBe(FLEET.length);
  expect(FLEET.length).toBeGreaterThanOrEqual(6);
});

test('can read every recording of the fleet', async () => {
  for (const name of new Set(FLEET.flatMap((agent) => agent.recordings))) {
    expect((await readRecording(`${folder}${name}.jsonl`)).lines.length).toBeGreaterThan(20);
  }
});

test('wakes several agents by tasks within ten seconds, at least one after a visible pause', async () => {
  const first = (await Promise.all(FLEET.map(wakings))).map((times) => times.find((time) => time > 0) ?? Infinity);
  const soon = first.filter((time) => time < FIRST_MS);
  expect(soon.length).toBeGreaterThanOrEqual(3);
  expect(Math.max(...soon)).toBeGreaterThan(3_000);
});

/** The ids of the messages, calls, tasks and runs that a recording plays, and the types of its events. */
async function played(recording: Recording) {
  const ids = new Set<string>();
  const types: string[] = [];
  const emit = async (events: readonly { event: Record<string, unknown> }[]) => {
    for (const { event } of events) {
      types.push(`${event.type} ${event.name ?? ''}`);
      const { task_id: taskId, request_id: requestId } = (event.value ?? {}) as Record<string, unknown>;
      for (const id of [event.messageId, event.toolCallId, event.runId, taskId, requestId]) {
        if (typeof id === 'string') ids.add(id);
      }
    }
  };
  const signal = new AbortController().signal;
  await play({ recording, sessionId: 's', fromLine: 0, speed: Number.POSITIVE_INFINITY, signal, emit });
  return { ids, types };
}

test('plays each recording again with the same events and without any id of the first time', async () => {
  for (const name of new Set(FLEET.flatMap((agent) => agent.recordings))) {
    const recording = await readRecording(`${folder}${name}.jsonl`);
    const [first, second] = [await played(withNewIds(recording, '1')), await played(withNewIds(recording, '2'))];
    expect(second.types).toEqual(first.types);
    expect(first.ids.size).toBeGreaterThan(5);
    expect([...second.ids].filter((id) => first.ids.has(id))).toEqual([]);
  }
});

test('plays round after round in one session, which ends with the demo and not with a recording', async () => {
  const context = new MemorySourceContext();
  const agent = { agentId: 'a', recordings: ['failure'], beginsAtMs: 0, restMs: 1 };
  const recordings = [await readRecording(`${folder}failure.jsonl`)];
  const source = new DemoSource({ context, agent, recordings, restLimiter: new RestLimiter(1, 0), speed: 10_000 });
  await source.start();
  const starts = () => context.events.filter(({ type }) => type === 'RUN_STARTED').length;
  await expect.poll(starts).toBeGreaterThan(5);
  const ends = () => context.events.filter(({ name }) => name === 'session:ended').length;
  expect([context.sessionIds.length, source.sessions.length, ends()]).toEqual([1, 1, 0]);
  await source.close();
  expect([context.sessionIds.length, source.sessions.length, ends()]).toEqual([1, 0, 1]);
});

/** Messages of a recording that are still pending replies after it. */
async function pendingAfter(name: string): Promise<string[]> {
  const recording = await readRecording(`${folder}${name}.jsonl`);
  const entries: EventEntry[] = [];
  const emit = async (events: readonly EmittedEvent[]) => {
    for (const { occurredAt, event } of events) {
      entries.push({ position: String(entries.length + 1), occurredAt, receivedAt: occurredAt, event });
    }
  };
  const signal = new AbortController().signal;
  await play({ recording, sessionId: 's', fromLine: 0, speed: Number.POSITIVE_INFINITY, signal, emit });
  const { placements } = placeEvents(NO_PLACES, entries);
  const { changes } = foldObligations(NO_OBLIGATIONS, [], placements, { agentId: 'a', sessionId: 's' });
  const last = new Map(changes.map(({ after }) => [after.messageId, after]));
  return [...last.values()].filter(({ state }) => state === 'owed').map(({ text }) => text);
}

test('plays no recording that leaves a pending reply, which would come up again in each round', async () => {
  for (const name of new Set(FLEET.flatMap((agent) => agent.recordings))) {
    expect([name, await pendingAfter(name)]).toEqual([name, []]);
  }
});

test('leaves no pending reply when it is stopped within a turn', async () => {
  const context = new MemorySourceContext();
  const agent = { agentId: 'a', recordings: ['failure'], beginsAtMs: 0, restMs: 1 };
  const recordings = [await readRecording(`${folder}failure.jsonl`)];
  const source = new DemoSource({ context, agent, recordings, restLimiter: new RestLimiter(1, 0), speed: 10 });
  await source.start();
  const turn = () => context.openWork(demoSessionId('a')).turn;
  await expect.poll(turn).not.toBeNull();
  const [messageId] = turn()?.userMessageIds ?? [];
  await source.close();
  expect(context.events.at(-2)).toMatchObject({
    name: 'message:delivery',
    value: { message_id: messageId, delivery: 'failed' },
  });
});

test('rests 20 to 40 seconds after its first sessions', () => {
  for (const agent of FLEET) {
    expect(restAfter(agent, 1)).toBe(agent.restMs);
    expect(restAfter(agent, 2)).toBeGreaterThanOrEqual(20_000);
    expect(restAfter(agent, 2)).toBeLessThanOrEqual(40_000);
  }
});

test('resumes the longest-resting agent when too many rest', async () => {
  const limiter = new RestLimiter(4, 2);
  const stop = new AbortController();
  const back: string[] = [];
  const rest = (name: string) => limiter.rest(3_600_000, stop.signal).then(() => back.push(name));
  const first = rest('first');
  const others = [rest('second')];
  others.push(rest('third'));
  await first;
  expect(back).toEqual(['first']);
  const second = others[0];
  others.push(rest('fourth'));
  await second;
  expect(back).toEqual(['first', 'second']);
  stop.abort();
  await Promise.all(others);
  expect(back).toHaveLength(4);
});
