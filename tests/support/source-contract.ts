import { COMMAND_TYPES } from '@interlude/protocol/commands';
import { eventRecordSchema } from '@interlude/protocol/envelope';
import { isNothing } from '@interlude/protocol/lifecycle/open-session';
import { type CommandHandlers, type CommandOf, HANDLER_NAMES, type Source } from '@interlude/runner/host/source';
import type { Feature, KindFeatures } from '@interlude/runner/sources/runner-kind';
import { expect, onTestFinished, test } from 'vitest';
import { MemorySurroundings } from './source-surroundings';

/** An agent of one kind, played, and how a source is put in front of it. */
export interface SourceStage {
  /** A source that is not started; the second one in front of the same agent comes after a kill of the first. */
  open(surroundings: MemorySurroundings): Source | Promise<Source>;
  /** The agent begins a turn. */
  begin(): Promise<void>;
  /** What runs now ends in good order; where nothing runs any more, nothing happens. */
  finish(): Promise<void>;
  /** What reached the agent's input; missing where nothing can be said to it. */
  heard?(): string[];
  /** Verbs that the source has only while there is something for them to do. */
  sometimes?: readonly (keyof CommandHandlers)[];
  /** It is no child of the source and outlives it. */
  goesOn?: boolean;
  /** What its kind says that it can do. */
  features?: KindFeatures;
}

/** What people can have an agent do, and the verb that does it. */
const DONE_BY: Partial<Record<Feature, keyof CommandHandlers>> = {
  messages: 'deliver',
  interrupt: 'interrupt',
  end: 'end',
  stop: 'stop',
  wake: 'wake',
  permissions: 'answer',
  questions: 'answer',
};

/** What holds for a source of every kind. @see lib/runner/sources/README.md */
export function testSourceContract(makeStage: () => Promise<SourceStage>): void {
  async function stage() {
    const played = await makeStage();
    let around = new MemorySurroundings();
    let source = await connect();
    onTestFinished(() => source.close(0, 'the test is over'));
    return {
      ...played,
      source: () => source,
      around: () => around,
      /** As kill -9 does it: what was stored is all that is left, and nobody hears the old source any more. */
      async killed() {
        const before = source;
        around.deafen();
        around = new MemorySurroundings(undefined, around);
        source = await connect();
        onTestFinished(() => before.close(0, 'the test is over'));
      },
    };

    async function connect() {
      const opened = await played.open(around);
      // As the host does: an agent that may have died meanwhile is asked before its source starts.
      await opened.reach?.();
      await opened.start();
      return opened;
    }
  }

  const openIn = (around: MemorySurroundings) => around.sessionIds.filter((id) => !isNothing(around.openWork(id)));
  const settled = (look: () => unknown) => expect.poll(look, { interval: 10 });

  test('emits only valid events of its own sessions', async () => {
    const { begin, finish, around, source } = await stage();
    const carried = new Set<string>();
    around().onTold = () => {
      for (const { sessionId } of source().sessions) carried.add(sessionId);
    };
    await begin();
    await finish();
    expect(around().told.length).toBeGreaterThan(0);
    for (const [at, { sessionId, occurredAt, event }] of around().told.entries()) {
      const record = { seq: at + 1, kind: 'event', agentId: 'a', sessionId, occurredAt, event };
      expect(eventRecordSchema.safeParse(record).error).toBeUndefined();
      expect([...carried]).toContain(sessionId);
    }
  });

  test('has an open turn from its start to its end', async () => {
    const { begin, finish, around } = await stage();
    expect(openIn(around())).toEqual([]);
    await begin();
    const [sessionId = ''] = openIn(around());
    expect(around().openWork(sessionId).turn).not.toBeNull();
    await finish();
    await settled(() => around().openWork(sessionId).turn).toBeNull();
  });

  test('repeats nothing and leaves nothing open after a kill within a turn', async () => {
    const { begin, finish, around, source, killed } = await stage();
    await begin();
    const [sessionId = ''] = openIn(around());
    const first = around().openWork(sessionId).turn?.runId;
    await killed();
    await finish();
    await settled(() => around().openWork(sessionId).turn?.runId).not.toBe(first);
    await source().close(0, 'closed');
    const told = around().told.filter((one) => one.sessionId === sessionId);
    const of = (type: string, id: 'runId' | 'messageId' | 'toolCallId') =>
      told.filter(({ event }) => event.type === type).map(({ event }) => String(event[id]));
    for (const ids of [
      of('RUN_STARTED', 'runId'),
      of('TEXT_MESSAGE_START', 'messageId'),
      of('TOOL_CALL_START', 'toolCallId'),
    ]) {
      expect(ids).toEqual([...new Set(ids)]);
    }
    const ends = told.filter(
      ({ event: { type, runId, name } }) =>
        name === 'session:ended' || ((type === 'RUN_FINISHED' || type === 'RUN_ERROR') && runId === first),
    );
    expect(ends.length).toBeGreaterThan(0);
    expect(of('RUN_FINISHED', 'runId')).not.toContain(of('RUN_ERROR', 'runId')[0]);
  });

  test('has a handler or a reason for each command', async () => {
    const { source } = await stage();
    for (const type of COMMAND_TYPES) {
      if (type === 'log-level.set' || source()[HANDLER_NAMES[type]] !== undefined) continue;
      expect(source().refusals?.[type]).toMatch(/\w+ \w+/);
    }
  });

  test('has exactly the handlers that its kind declares', async () => {
    const { source, features, sometimes = [] } = await stage();
    if (features === undefined) return;
    const named = Object.entries(DONE_BY) as [Feature, keyof CommandHandlers][];
    for (const verb of new Set(Object.values(DONE_BY))) {
      const of = named.filter(([, one]) => one === verb).map(([feature]) => features[feature]);
      const isSaid = of.some((support) => support === true || 'partly' in support);
      if (sometimes.includes(verb) && isSaid) continue;
      expect([verb, source()[verb] !== undefined]).toEqual([verb, isSaid]);
    }
  });

  test('reports attachments if its kind supports any', async () => {
    const { source, features, begin } = await stage();
    if (features === undefined) return;
    // some agents say so only then
    await begin();
    const [facts] = source().sessions;
    const { attachments } = features;
    const takes = attachments === true || 'partly' in attachments;
    expect((facts?.attachments ?? []).length > 0).toBe(takes);
  });

  test('delivers a message once when killed during its delivery', async () => {
    const { source, heard, killed, begin, goesOn = false } = await stage();
    if (heard === undefined) return;
    await begin();
    const [{ sessionId } = { sessionId: '' }] = source().sessions;
    const from = { kind: 'person', id: 'operator' } as const;
    const body = { messageId: 'm1', text: 'hello', from };
    const command: CommandOf<'message'> = { id: 'm1', type: 'message', sessionId, createdAt: 1, expiresAt: 2, body };
    expect(await source().deliver?.(command, false)).toEqual({ state: 'delivered' });
    expect(await source().deliver?.(command, true)).toEqual({ state: 'delivered' });
    expect(heard()).toEqual(['hello']);
    await killed();
    expect(await source().deliver?.(command, true)).toEqual({ state: 'delivered' });
    // If the process that had it is gone, the next one gets it, once; one that goes on has it.
    await settled(heard).toEqual(goesOn ? ['hello'] : ['hello', 'hello']);
  });

  test('emits nothing and leaves nothing open after close', async () => {
    const { source, around, begin, goesOn } = await stage();
    await begin();
    await source().close(0, 'the runner was stopped');
    const told = around().told.length;
    await new Promise((resolve) => setImmediate(resolve));
    expect(around().told).toHaveLength(told);
    if (goesOn) return;
    expect(openIn(around())).toEqual([]);
    expect(around().events.at(-1)).toMatchObject({ type: 'CUSTOM', name: 'session:ended' });
  });
}
