import { AppError } from '@interlude/protocol/errors';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { describe, expect, test } from 'vitest';
import { clientIdOf, messageIdOf } from '@/lib/server/agui/client-parts';
import { readRunInput } from '@/lib/server/agui/run-input';

const read = (more: object) =>
  readRunInput(new TextEncoder().encode(JSON.stringify({ threadId: 't', runId: 'r', ...more })));
const message = (id: string, role: string, content: unknown, more: object = {}) => ({ id, role, content, ...more });

describe('an input', () => {
  test('sends only the user messages at its end', async () => {
    const messages = [message('u0', 'user', 'old'), message('a0', 'assistant', 'older'), message('u1', 'user', 'one')];
    const parts = [
      { type: 'text', text: 'two' },
      { type: 'image', source: {} },
    ];
    const { sent } = await read({ messages: [...messages, message('u2', 'user', parts)] });
    expect(sent).toEqual([
      { clientId: 'agui:u1', text: 'one' },
      { clientId: 'agui:u2', text: 'two' },
    ]);
  });

  test('lists the client’s texts, thoughts, calls and results', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'Bash', arguments: '{"a":1}' } };
    const { parts } = await read({
      messages: [
        message('a1', 'assistant', 'Hello', { toolCalls: [call] }),
        message('g1', 'reasoning', 'hm'),
        message('x1', 'tool', 'ok', { toolCallId: 'c1' }),
        message('y1', 'activity', {}),
      ],
    });
    expect({ ...parts.of.text.about('a1'), isOpen: parts.of.text.isOpen('a1') }).toMatchObject({
      clientLength: 5,
      logLength: 0,
      isOpen: false,
    });
    expect(parts.of.thought.about('g1')).toMatchObject({ clientLength: 2 });
    expect(parts.of.call.about('c1')).toMatchObject({ clientLength: 7 });
    expect([parts.isAnswered('c1'), parts.hasId('y1')]).toEqual([true, false]);
  });

  test.each(['threadId', 'runId'])('is refused with a long %s', async (name) => {
    await expect(read({ [name]: 'x'.repeat(MAX_ID_LENGTH + 1) })).rejects.toThrow(name);
    expect((await read({ [name]: '__proto__' }))[name as 'runId']).toBe('__proto__');
  });

  test('is of 1.0 if it names its version', async () => {
    expect([(await read({})).dialect, (await read({ protocolVersion: '1.0' })).dialect]).toEqual(['0.0.59', '1.0']);
  });

  test.each<[unknown, number | null]>([
    [undefined, null],
    [true, 600_000],
    [false, 0],
    [{ seconds: 5 }, 5_000],
    [{ seconds: 1e9 }, 3_600_000],
  ])('follows for the requested time, at most an hour: %j', async (follow, followMs) => {
    expect((await read({ forwardedProps: { interlude: { follow } } })).followMs).toBe(followMs);
  });

  test('replaces a lone surrogate', async () => {
    const { sent } = await read({ messages: [message('u1', 'user', 'a\ud83d')] });
    expect(sent[0]?.text).toBe('a\ufffd');
  });

  test.each<[string, object]>([
    ['too many messages', { messages: Array.from({ length: 51 }, (_, index) => message(`u${index}`, 'user', 'x')) }],
    ['a message without an id', { messages: [{ role: 'user', content: 'x' }] }],
    ['too many values', { state: Array.from({ length: 100_001 }, () => 0) }],
  ])('with %s is refused with the reason', async (_, more) => {
    const error = await read(more).catch((refusal: unknown) => refusal);
    expect(error).toBeInstanceOf(AppError);
    expect((error as AppError).code).toBe('invalid_argument');
  });
});

describe('the id of a message', () => {
  test('round-trips unless it is too long', () => {
    expect(messageIdOf(clientIdOf('u1'))).toBe('u1');
    const long = 'x'.repeat(MAX_ID_LENGTH);
    expect(clientIdOf(long).length).toBeLessThanOrEqual(MAX_ID_LENGTH);
    expect(messageIdOf(clientIdOf(long))).toBeNull();
    expect([messageIdOf('someone’s'), messageIdOf(null)]).toEqual([null, null]);
  });
});
