import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { Item, ObligationList, TranscriptPage } from '@/lib/protocol/read-models';
import { ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** What the server must make of messages that are told otherwise than with a start and an end. */
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
    const owed = async () => {
      const { obligations }: ObligationList = await read(`/agents/${id}/reply-obligations`);
      return obligations.map(({ messageId, text }) => [messageId, text]);
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
      test('is owed, claimed by the turn that names it, and answered by its end', async () => {
        await send(chunk('please deploy', { messageId: 'u1', role: 'user' }));
        expect(await owed()).toEqual([['u1', 'please deploy']]);
        expect(await turns()).toEqual([['none', 'none', 'user: please deploy']]);
        await send(starts('r1', 'u1'));
        expect(await turns()).toEqual([['user', 'r1', 'user: please deploy']]);
        await send(chunk('Done.', { messageId: 'a1', role: 'assistant' }), ends('r1'));
        expect(await turns()).toEqual([['user', 'r1', 'user: please deploy', 'assistant: Done.']]);
        expect(await owed()).toEqual([]);
      });
    });

    test('chunks that leave out their name go on with the one before, over requests', async () => {
      await send(starts('r1'), chunk('a', { messageId: 'm1' }));
      await send(chunk('b'), { type: 'TOOL_CALL_CHUNK', toolCallId: 'c1', toolCallName: 'Bash', delta: '{"a":' });
      await send({ type: 'TOOL_CALL_CHUNK', delta: '1}' }, chunk('nobody’s'));
      await send({ type: 'REASONING_MESSAGE_CHUNK', messageId: 'm2', delta: 'h' });
      await send({ type: 'REASONING_MESSAGE_CHUNK', delta: 'm' }, ends('r1'));
      expect(await turns()).toEqual([['user', 'r1', 'assistant: ab', 'Bash {"a":1}: null', 'thinks: hm']]);
      await send(chunk('please', { messageId: 'u1', role: 'user' }));
      await send(chunk(' deploy'));
      expect(await owed()).toEqual([['u1', 'please deploy']]);
    });
  });
}

function lineOf(item: Item): string {
  if (item.kind === 'message') return `${item.role}: ${item.text}`;
  if (item.kind === 'reasoning') return `thinks: ${item.text}`;
  return item.kind === 'tool-call' ? `${item.name} ${item.argsText}: ${item.result}` : item.kind;
}
