import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type { Item, ObligationList, TranscriptPage } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** Messages in other forms than start, content and end. */
export function describeMessagesContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`messages, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        id = `messages-${serial}`;
        seq = 0;
        await run();
      });

    const send = (...events: AgUiEvent[]) =>
      ingest(
        target,
        events.map((event) => record(++seq, { agentId: id, sessionId: id, event })),
        1,
        id,
      );
    const read = async (path: string) => (await target.get(`/api/v1${path}`)).json();
    const transcript = (): Promise<TranscriptPage> => read(`/sessions/${id}/transcript`);
    const openMessages = async () => {
      const { obligations }: ObligationList = await read(`/agents/${id}/reply-obligations`);
      return obligations.map(({ messageId, text }) => [messageId, text]);
    };
    const framesOf = async (position: string, ...events: AgUiEvent[]) => {
      await send(...events);
      const reader = await target.stream(`topic=session:${id}&after=${position}`);
      await reader.frame('up-to-date');
      await reader.cancel();
      return reader.frames.flatMap((frame) =>
        frame.event === 'session-event' ? [{ position: frame.id ?? '', ...frame.data }] : [],
      );
    };
    const turns = async () =>
      (await transcript()).turns.map((turn) => [turn.kind, turn.id.split(':')[0], ...turn.items.map(lineOf)]);
    const starts = (runId: string, ...userMessageIds: string[]): AgUiEvent => ({
      type: 'RUN_STARTED',
      threadId: id,
      runId,
      metadata: { interlude: { turn: 'user', userMessageIds } },
    });
    const ends = (runId: string): AgUiEvent => ({ type: 'RUN_FINISHED', threadId: id, runId });
    const chunk = (delta: string, more: object = {}): AgUiEvent => ({ type: 'TEXT_MESSAGE_CHUNK', delta, ...more });

    describe('a person’s message in one chunk', () => {
      test('has a pending reply, is claimed by the turn that names it, and is answered by its end', async () => {
        await send(chunk('please deploy', { messageId: 'u1', role: 'user' }));
        expect(await openMessages()).toEqual([['u1', 'please deploy']]);
        expect(await turns()).toEqual([['none', 'none', 'user: please deploy']]);
        await send(starts('r1', 'u1'));
        expect(await turns()).toEqual([['user', 'r1', 'user: please deploy']]);
        await send(chunk('Done.', { messageId: 'a1', role: 'assistant' }), ends('r1'));
        expect(await turns()).toEqual([['user', 'r1', 'user: please deploy', 'assistant: Done.']]);
        expect(await openMessages()).toEqual([]);
      });
    });

    describe('a snapshot of messages', () => {
      const snapshot = (...messages: object[]): AgUiEvent => ({ type: 'MESSAGES_SNAPSHOT', messages });
      const writes = (messageId: string, delta: string, role = 'assistant'): AgUiEvent[] => [
        { type: 'TEXT_MESSAGE_START', messageId, role },
        { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
        { type: 'TEXT_MESSAGE_END', messageId },
      ];
      const calls: AgUiEvent[] = [
        { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"a":1}' },
        { type: 'TOOL_CALL_END', toolCallId: 'c1' },
      ];
      const history = [
        ...writes('u1', 'please deploy', 'user'),
        starts('r1', 'u1'),
        ...writes('a1', 'On it.'),
        ...calls,
      ];
      const messages = [
        { id: 'u1', role: 'user', content: 'please deploy' },
        { id: 'a1', role: 'assistant', content: 'On it.', toolCalls: [call('c1', '{"a":1}')] },
        { id: 'r', role: 'tool', toolCallId: 'c1', content: 'ok' },
      ];
      const whole = [['user', 'r1', 'user: please deploy', 'assistant: On it.', 'Bash {"a":1}: ok']];

      for (const isOneRequest of [true, false]) {
        test(`duplicates nothing that was streamed ${isOneRequest ? 'in its request' : 'before it'}, nor an earlier snapshot`, async () => {
          const events = [...history, snapshot(...messages), ends('r1'), starts('r2'), snapshot(...messages)];
          if (isOneRequest) await send(...events);
          else for (const event of events) await send(event);
          expect(await turns()).toEqual([...whole, ['user', 'r2']]);
          expect(await openMessages()).toEqual([]);
        });
      }

      test('adds new messages in place, and replaces changed ones, live and reloaded', async () => {
        await send(...history, ends('r1'));
        const live = transcriptFromPage(await transcript());
        const update = snapshot(
          { id: 'u0', role: 'user', content: 'long ago' },
          { id: 's0', role: 'system', content: 'Be brief.' },
          ...messages.slice(0, 1),
          { id: 'a1', role: 'assistant', content: 'On it now.', toolCalls: [call('c1', '{"a":1}'), call('c2', '{}')] },
          ...messages.slice(2),
          { id: 't1', role: 'reasoning', content: 'hm' },
          { id: 'x1', role: 'activity', activityType: 'search', content: { q: 1 } },
          { id: 'a2', role: 'assistant', content: 'first' },
          { id: 'a2', role: 'assistant', content: 'last' },
        );
        const frames = await framesOf(live.position, starts('r2'), update, ends('r2'));
        const after = [
          ['user', 'r1', 'user: please deploy', 'assistant: On it now.', 'Bash {"a":1}: ok'],
          ['user', 'r2', 'user: long ago', 'system: Be brief.', 'Bash {}: null', 'thinks: hm', 'assistant: last'],
        ];
        expect(await turns()).toEqual(after);
        expect(await openMessages()).toEqual([]);
        const page = await transcript();
        expect(foldTranscript(live, frames).turns).toEqual(page.turns);
        const again = await framesOf(page.position, update);
        expect(again.map(({ event }) => event.type)).toEqual(['MESSAGES_SNAPSHOT']);
        expect((await transcript()).turns).toEqual(page.turns);
      });

      describe('that names what was streamed by other ids', () => {
        const renamed = [
          { id: 'x-u1', role: 'user', content: 'please deploy' },
          { id: 'x-t1', role: 'reasoning', content: 'hm' },
          { id: 'x-a1', role: 'assistant', content: 'On it.\n', toolCalls: [call('x-c1', '{ "a": 1 }')] },
          { id: 'x-r', role: 'tool', toolCallId: 'x-c1', content: 'ok' },
        ];
        const thought = ['START', 'CONTENT', 'END'].map(
          (verb): AgUiEvent => ({ type: `REASONING_MESSAGE_${verb}`, messageId: 't1', delta: 'hm' }),
        );
        const streamed = [
          ...writes('u1', 'please deploy', 'user'),
          starts('r1', 'u1'),
          ...thought,
          ...writes('a1', 'On it.'),
        ];
        const result: AgUiEvent = { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', messageId: 'r', content: 'ok' };
        const expected = ['user', 'r1', 'user: please deploy', 'thinks: hm', 'assistant: On it.', 'Bash {"a":1}: ok'];

        for (const isOneRequest of [true, false]) {
          test(`duplicates nothing ${isOneRequest ? 'in its request' : 'before it'} when it is repeated`, async () => {
            const events = [...streamed, ...calls, result, snapshot(...renamed), ends('r1')];
            if (isOneRequest) await send(...events);
            else for (const event of events) await send(event);
            const page = await transcript();
            const live = transcriptFromPage(page);
            const frames = await framesOf(page.position, starts('r2'), snapshot(...renamed), ...writes('a2', 'Done.'));
            expect(frames.filter(({ event }) => event.metadata?.interlude?.ofSnapshot !== undefined)).toEqual([]);
            await send(snapshot(...renamed, { id: 'x-a2', role: 'assistant', content: 'Done.' }), ends('r2'));
            expect(await turns()).toEqual([expected, ['user', 'r2', 'assistant: Done.']]);
            expect(foldTranscript(live, frames).turns.length).toBe(2);
            expect(await openMessages()).toEqual([]);
          });
        }

        test('adds the result of a call without one, live and reloaded', async () => {
          await send(...streamed, ...calls);
          const page = await transcript();
          const frames = await framesOf(page.position, snapshot(...renamed), ends('r1'));
          expect(await turns()).toEqual([expected]);
          expect(foldTranscript(transcriptFromPage(page), frames).turns).toEqual((await transcript()).turns);
        });

        test('adds a message that a person repeats in another turn', async () => {
          await send(...writes('u1', 'yes', 'user'), starts('r1', 'u1'), ...writes('a1', 'One.'), ends('r1'));
          await send(starts('r2'), ...writes('a2', 'Two.'));
          const again = { id: 'x-u2', role: 'user', content: 'yes' };
          await send(snapshot(again, { id: 'x-a2', role: 'assistant', content: 'Two.' }), ends('r2'));
          expect(await turns()).toEqual([
            ['user', 'r1', 'user: yes', 'assistant: One.'],
            ['user', 'r2', 'assistant: Two.', 'user: yes'],
          ]);
        });

        test('adds a message between two known ones that repeats earlier words', async () => {
          await send(
            starts('r1'),
            ...writes('a1', 'Done.'),
            ends('r1'),
            starts('r2'),
            ...writes('a2', 'Two.'),
            ends('r2'),
          );
          const named = (messageId: string, content: string) => ({ id: messageId, role: 'assistant', content });
          await send(starts('r3'), ...writes('a3', 'Three.'));
          await send(snapshot(named('a2', 'Two.'), named('x-b', 'Done.'), named('a3', 'Three.')), ends('r3'));
          expect((await turns()).at(-1)).toEqual(['user', 'r3', 'assistant: Three.', 'assistant: Done.']);
        });

        test('counts repeated messages, and adds new ones with the same words', async () => {
          const done = (messageId: string) => ({ id: messageId, role: 'assistant', content: 'Done.' });
          await send(starts('r1'), ...writes('a1', 'Done.'), ends('r1'), starts('r2'), ...writes('a2', 'Done.'));
          await send(snapshot(done('x-a1'), done('x-a2')), ends('r2'));
          await send(starts('r3'), snapshot(done('x-a1'), done('x-a2'), done('x-a3')));
          await send(snapshot(done('x-a2'), done('x-a3')), ends('r3'));
          await send(starts('r4'), ...writes('a4', 'Done.'), ends('r4'));
          await send(starts('r5'), snapshot(done('a4'), done('x-a5')), ends('r5'));
          const answered = (turn: string) => ['user', turn, 'assistant: Done.'];
          expect(await turns()).toEqual(['r1', 'r2', 'r3', 'r4', 'r5'].map(answered));
        });
      });

      test('ignores forged metadata in the agent’s own session', async () => {
        await send(starts('r1'), ...writes('a1', 'mine'), ends('r1'), starts('r2'));
        const ofSnapshot = { turnId: 'r1' };
        await send(chunk('forged', { messageId: 'a1', metadata: { interlude: { whole: true, ofSnapshot } } }));
        expect(await turns()).toEqual([
          ['user', 'r1', 'assistant: mine'],
          ['user', 'r2', 'assistant: forged'],
        ]);
      });

      test('knows the messages of a run’s input, and ignores malformed ones', async () => {
        const input = { messages: [{ id: 'u1', role: 'user', content: 'hi' }] };
        await send({ type: 'RUN_STARTED', threadId: id, runId: 'r1', input });
        await send(
          ...calls,
          snapshot({ id: 'u1', role: 'user', content: 'hi' }, { id: 'c1', role: 'assistant', content: 'yes' }),
        );
        await send({
          type: 'MESSAGES_SNAPSHOT',
          messages: [null, 7, { id: '' }, { role: 'user', content: 'x' }, { id: {}, role: 'tool' }],
        });
        await send({ type: 'MESSAGES_SNAPSHOT', messages: 'none' });
        expect(await turns()).toEqual([['user', 'r1', 'user: hi', 'Bash {"a":1}: null', 'assistant: yes']]);
        expect(await openMessages()).toEqual([['u1', 'hi']]);
      });

      test('adds nothing to messages streamed in pieces, however often a request repeats it', async () => {
        for (const delta of ['please ', 'deploy']) await send(chunk(delta, { messageId: 'u1', role: 'user' }));
        await send(starts('r1', 'u1'));
        for (const delta of ['On ', 'it', '.']) await send(chunk(delta, { messageId: 'a1' }));
        const { position } = await transcript();
        const repeats = Array.from({ length: 3 }, () =>
          snapshot(...messages.slice(0, 1), { id: 'a1', role: 'assistant', content: 'On it.' }),
        );
        const frames = await framesOf(position, ...repeats);
        expect(frames.map(({ event }) => event.type)).toEqual(repeats.map(() => 'MESSAGES_SNAPSHOT'));
      });

      test('with thousands of messages, repeated in one request, is applied once', async () => {
        const many = Array.from({ length: 4_000 }, (_, index) => ({
          id: `m${index}`,
          role: 'assistant',
          content: `${index}`,
        }));
        await send(starts('r1'), snapshot(...many), snapshot(...many));
        await send(snapshot(...many), ends('r1'));
        const [turn] = (await transcript()).turns;
        expect([turn?.items.length, turn?.omitted]).toEqual([2_000, 2_000]);
        expect(turn?.items.at(-1)).toMatchObject({ id: 'm3999', text: '3999', streaming: false });
      });
    });

    test('continues the previous message with unnamed chunks, across requests', async () => {
      await send(starts('r1'), chunk('a', { messageId: 'm1' }));
      await send(chunk('b'), { type: 'TOOL_CALL_CHUNK', toolCallId: 'c1', toolCallName: 'Bash', delta: '{"a":' });
      await send({ type: 'TOOL_CALL_CHUNK', delta: '1}' }, chunk('nobody’s'));
      await send({ type: 'REASONING_MESSAGE_CHUNK', messageId: 'm2', delta: 'h' });
      await send({ type: 'REASONING_MESSAGE_CHUNK', delta: 'm' }, ends('r1'));
      expect(await turns()).toEqual([['user', 'r1', 'assistant: ab', 'Bash {"a":1}: null', 'thinks: hm']]);
      await send(chunk('please', { messageId: 'u1', role: 'user' }));
      await send(chunk(' deploy'));
      expect(await openMessages()).toEqual([['u1', 'please deploy']]);
    });
  });
}

function call(id: string, args: string) {
  return { id, type: 'function', function: { name: 'Bash', arguments: args } };
}

function lineOf(item: Item): string {
  if (item.kind === 'message') return `${item.role}: ${item.text}`;
  if (item.kind === 'reasoning') return `thinks: ${item.text}`;
  return item.kind === 'tool-call' ? `${item.name} ${item.argsText}: ${item.result}` : item.kind;
}
