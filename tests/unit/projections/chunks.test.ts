import type { AgUiEvent, InterludeMetadata } from '@interlude/protocol/ag-ui';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { newSession } from '@interlude/protocol/projections/session-summary';
import { placeEvents } from '@interlude/protocol/projections/turns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldSession } from '@/tests/support/memory-log';
import { custom, runEnds, runStarts, says, told, turnsOf } from './session-story';

interface Text {
  id: string;
  role: 'user' | 'assistant';
  pieces: string[];
  replyTo?: string[];
}

const textChunks = ({ id, role, pieces, replyTo }: Text): AgUiEvent[] =>
  pieces.map((delta, index) => {
    if (index > 0) return { type: 'TEXT_MESSAGE_CHUNK', delta };
    const metadata = replyTo === undefined ? {} : { metadata: { interlude: { replyTo } } };
    return { type: 'TEXT_MESSAGE_CHUNK', messageId: id, role, delta, ...metadata };
  });
const textWhole = ({ id, role, pieces, replyTo }: Text): AgUiEvent[] => {
  const metadata = replyTo === undefined ? {} : { metadata: { interlude: { replyTo } } };
  return [
    { type: 'TEXT_MESSAGE_START', messageId: id, role, ...metadata },
    ...pieces.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta })),
    { type: 'TEXT_MESSAGE_END', messageId: id },
  ];
};
const deploy: Text = { id: 'u1', role: 'user', pieces: ['please', ' deploy'] };
const naming = (...userMessageIds: string[]): InterludeMetadata => ({ turn: 'user', userMessageIds });

const stateOf = (log: ReturnType<typeof told>) =>
  [...log.obligations.values()].map(({ messageId, text, state, answeredInTurnId }) => [
    messageId,
    text,
    state,
    answeredInTurnId,
  ]);

describe('a person’s message in chunks', () => {
  it('has a pending reply from the first chunk, and is complete and not streaming', () => {
    const log = told(textChunks(deploy).slice(0, 1));
    expect(stateOf(log)).toEqual([['u1', 'please', 'owed', null]]);
    log.append(textChunks(deploy).slice(1));
    expect(stateOf(log)).toEqual([['u1', 'please deploy', 'owed', null]]);
    expect(log.page().turns[0]?.items).toMatchObject([{ role: 'user', text: 'please deploy', streaming: false }]);
  });

  it('moves into the answering turn and is answered when the turn finishes', () => {
    for (const said of [naming('u1'), {}]) {
      const log = told(textChunks(deploy), runStarts('r1', said), says('m1', 'Done.'), runEnds('r1'));
      expect(turnsOf(log)).toEqual({ 'user r1 finished': ['user: please deploy', 'assistant: Done.'] });
      expect(stateOf(log)).toEqual([['u1', 'please deploy', 'answered', 'r1']]);
    }
  });

  it('continues in the claiming turn across server events', () => {
    const [first, second] = textChunks(deploy) as [AgUiEvent, AgUiEvent];
    const log = told([first], custom('message:delivery', { message_id: 'u9', delivery: 'delivered' }));
    log.append([...says('u8', 'from the page', 'user'), second]);
    expect(stateOf(log)).toEqual([
      ['u1', 'please deploy', 'owed', null],
      ['u8', 'from the page', 'owed', null],
    ]);
  });

  it('has no second obligation when repeated, answered or waived', () => {
    const waived = custom('obligation:waived', { message_id: 'u1' });
    const log = told(textChunks(deploy).slice(0, 1), waived, textChunks(deploy).slice(1), textChunks(deploy));
    expect(stateOf(log)).toEqual([['u1', 'please', 'waived', null]]);
  });
});

it('an unnamed chunk continues the last one of its speaker, unless another item started', () => {
  const chunk = (delta: string, more = {}): AgUiEvent => ({ type: 'TEXT_MESSAGE_CHUNK', delta, ...more });
  const log = told(runStarts('r1', naming()), [
    chunk('a', { messageId: 'm1' }),
    chunk('x', { messageId: 'x1', subagentRunId: 't1' }),
    chunk('b'),
    chunk('y', { subagentRunId: 't1' }),
    { type: 'TOOL_CALL_CHUNK', toolCallId: 'c1', toolCallName: 'Bash', delta: '{"a"' },
    { type: 'TOOL_CALL_CHUNK', delta: ':1}' },
    chunk('nobody’s'),
    { type: 'REASONING_MESSAGE_CHUNK', messageId: 'm2', delta: 'hm' },
    { type: 'REASONING_MESSAGE_CHUNK', delta: 'm' },
    { type: 'TOOL_CALL_START', toolCallId: 'c2', toolCallName: 'Read' },
    { type: 'REASONING_MESSAGE_CHUNK', delta: 'nobody’s' },
  ]);
  expect(turnsOf(log)).toEqual({
    'user r1 open': ['assistant: ab', 'Bash running: null', 'thinks: hmm', 'Read running: null'],
  });
  expect(log.page().turns[0]?.items[1]).toMatchObject({ args: { a: 1 } });
  const ofSubagent = log.rows.filter(({ turnId }) => turnId === 'task:t1').map(({ entry }) => entry.event.messageId);
  expect(ofSubagent).toEqual(['x1', 'x1']);
});

const texts = fc
  .record({
    role: fc.constantFrom('user' as const, 'assistant' as const),
    pieces: fc.array(fc.string({ maxLength: 6 }), { minLength: 1, maxLength: 4 }),
    replyTo: fc.option(
      fc.array(
        fc.integer({ min: 0, max: 8 }).map((at) => `text${at}`),
        { maxLength: 2 },
      ),
      {
        nil: undefined,
      },
    ),
  })
  .map(({ role, pieces, replyTo }) => ({
    text: { role, pieces, ...(role === 'user' || !replyTo ? {} : { replyTo }) },
  }));
const runs = fc.record({ run: fc.constantFrom('start', 'named', 'end', 'fail') });

it('chunks fold to the same history as starts and ends', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof({ weight: 3, arbitrary: texts }, runs), { maxLength: 14 }), (chapters) => {
      const history = (tell: (text: Text) => AgUiEvent[]) =>
        chapters.flatMap((chapter, index): AgUiEvent[] => {
          if ('text' in chapter) return tell({ id: `text${index}`, ...chapter.text });
          if (chapter.run === 'start') return runStarts(`r${index}`);
          if (chapter.run === 'named') return runStarts(`r${index}`, naming(`text${index - 1}`, `text${index - 2}`));
          return chapter.run === 'end' ? [{ type: 'RUN_FINISHED' }] : [{ type: 'RUN_ERROR', message: 'No' }];
        });
      const [chunked, whole] = [textChunks, textWhole].map((tell) => {
        const events = [...history(tell), { type: 'RUN_FINISHED' }];
        const log = told(events);
        const entries = events.map((event, index) => ({
          position: String(index + 1),
          occurredAt: 1,
          receivedAt: 1,
          event,
        }));
        const { placements } = placeEvents(NO_PLACES, entries);
        const { summary } = foldSession(newSession('s1', 'a1', 0), placements, []);
        const streams = log
          .page()
          .turns.some(({ items }) => items.some((item) => 'streaming' in item && item.streaming));
        const turns = log
          .page()
          .turns.map((turn) => [
            turn.kind,
            turn.state,
            turn.userMessageIds,
            turn.items.map((item) =>
              item.kind === 'message' ? [item.id, item.role, item.text, item.replyTo] : item.kind,
            ),
          ]);
        const obligations = stateOf(log).map(([id, text, state, turnId]) => [
          id,
          text,
          state,
          turnId?.startsWith('none:') ?? turnId,
        ]);
        return { turns, obligations, streams, title: summary.title, lastText: summary.lastText, state: summary.state };
      });
      expect(chunked).toEqual(whole);
    }),
    { numRuns: 500 },
  );
});
