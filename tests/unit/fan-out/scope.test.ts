import { EVERYTHING, type Scope } from '@interlude/protocol/scope';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import { listenTo } from '@/tests/support/frames';
import { AccessStage } from '../../support/access-stage';
import { type BusyAgent, busyAgent } from '../../support/busy-agent';
import type { FrameReader } from '../../support/frames';
import { idsOf } from '../../support/frames';

let stage: AccessStage;
let fanOut: FanOut;
let own: BusyAgent;
beforeEach(async () => {
  stage = await AccessStage.start();
  fanOut = new FanOut(stage.parts.database);
  own = await busyAgent(stage, 'a');
  await busyAgent(stage, 'b');
});
afterEach(async () => {
  fanOut.close();
  await stage.close();
});

const ofAgent = (): Scope => ({ kind: 'agents', ids: [own.agentId], prefixes: [] });
const ofSession = (): Scope => ({ kind: 'session', sessionId: own.sessionId });
const listOf = (within: Scope): Scope => ({ kind: 'fleet', within });
const KINDS = ['session', 'agent', 'task', 'obligation', 'inbox'] as const;

async function caughtUp(scope: Scope, after: number | null): Promise<FrameReader> {
  const reader = await listenTo(fanOut, ['fleet'], { scope, after });
  await reader.frame('up-to-date');
  return reader;
}

/** Kinds of read models that a reader received about agents, by the last letter of their id. */
function received(reader: FrameReader, letter: string): string[] {
  const about = new RegExp(`-${letter}\\b`);
  const kinds = reader.frames.flatMap(({ event, data }) => (about.test(JSON.stringify(data)) ? event : []));
  return KINDS.filter((kind) => kinds.includes(kind));
}

describe('a fleet stream', () => {
  test('replays only rows in its scope', async () => {
    const all = await caughtUp(EVERYTHING, 0);
    expect([received(all, 'a'), received(all, 'b')]).toEqual([KINDS, KINDS]);
    const agent = await caughtUp(ofAgent(), 0);
    expect([received(agent, 'a'), received(agent, 'b')]).toEqual([KINDS, []]);
    const session = await caughtUp(ofSession(), 0);
    expect([received(session, 'a'), received(session, 'b')]).toEqual([['session', 'task', 'obligation', 'inbox'], []]);
  });

  test('replays only list rows to a reader of the list', async () => {
    const all = await caughtUp(listOf(EVERYTHING), 0);
    expect([received(all, 'a'), received(all, 'b')]).toEqual([['session'], ['session']]);
    const agent = await caughtUp(listOf(ofAgent()), 0);
    expect([received(agent, 'a'), received(agent, 'b')]).toEqual([['session'], []]);
  });

  test('is up to date at the newest position in its scope, even if others write after it', async () => {
    for (const scope of [ofAgent(), ofSession(), listOf(ofAgent()), listOf(EVERYTHING)]) {
      const reader = await caughtUp(scope, 0);
      const { position } = (await reader.frame('up-to-date')).data as { position: string };
      expect(Number(position)).toBe(idsOf(reader.frames).at(-1));
    }
  });

  test('sends only live rows in its scope', async () => {
    const all = await caughtUp(EVERYTHING, null);
    const agent = await caughtUp(ofAgent(), null);
    const session = await caughtUp(ofSession(), null);
    const say = (letter: string, position: number) =>
      stage.ask('/events', {
        method: 'POST',
        body: {
          producer: { id: `agent-${letter}/live`, epoch: 1 },
          records: [
            {
              ...{ seq: 1, kind: 'event', agentId: `agent-${letter}`, sessionId: `session-${letter}` },
              occurredAt: 1_795_170_100_000 + position,
              event: {
                type: 'CUSTOM',
                name: 'task:started',
                value: { task_id: `live-${letter}`, description: 'Live' },
              },
            },
          ],
        },
      });
    await say('b', 1);
    await say('a', 2);
    for (const reader of [all, agent, session]) {
      await reader.until((frames) => frames.some(({ data }) => JSON.stringify(data).includes('live-a')));
    }
    expect(received(all, 'b')).toContain('task');
    expect([received(agent, 'b'), received(session, 'b')]).toEqual([[], []]);
  });
});
