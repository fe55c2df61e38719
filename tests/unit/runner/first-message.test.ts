import { deliverFirstMessage } from '@interlude/runner/host/first-message';
import type { CommandOutcome } from '@interlude/runner/host/seen-commands';
import { describe, expect, test } from 'vitest';
import { MemorySourceContext } from '@/tests/support/source-contract';

/** One runner after another for the same session. */
function sayer(outcome: () => CommandOutcome = () => ({ state: 'delivered' })) {
  const surroundings = new MemorySourceContext();
  const said: { messageId: string; text: string; again: boolean }[] = [];
  return {
    surroundings,
    said,
    run: (text: string, around = surroundings) =>
      deliverFirstMessage(
        { sessionId: 's', text },
        {
          context: around,
          deliver: async ({ body: { messageId, text: words } }, again) => {
            said.push({ messageId, text: words, again });
            return outcome();
          },
        },
      ),
    told: () => surroundings.events.filter(({ type }) => type === 'TEXT_MESSAGE_START'),
  };
}

describe('the --prompt message', () => {
  test('is logged as an operator message, then delivered under the same id', async () => {
    const { run, said, told, surroundings } = sayer();
    await run('Build it.');
    expect(told()).toEqual([
      { type: 'TEXT_MESSAGE_START', messageId: said[0]?.messageId, role: 'user', name: 'operator' },
    ]);
    expect(surroundings.events.map(({ delta }) => delta).filter(Boolean)).toEqual(['Build it.']);
    expect(said).toMatchObject([{ text: 'Build it.', again: false }]);
  });

  test('is not repeated by the next runner; another text is another message', async () => {
    const { run, said, told } = sayer();
    await run('Build it.');
    await run('Build it.');
    expect(said).toHaveLength(1);
    await run('Test it.');
    expect(said.map(({ text, again }) => [text, again])).toEqual([
      ['Build it.', false],
      ['Test it.', false],
    ]);
    expect(told()).toHaveLength(2);
  });

  test('is logged once and redelivered with “again” after a kill', async () => {
    const { run, said, told } = sayer(() => {
      if (said.length === 1) throw new Error('killed');
      return { state: 'delivered' };
    });
    await run('Build it.');
    await run('Build it.');
    await run('Build it.');
    expect(told()).toHaveLength(1);
    expect(said.map(({ again }) => again)).toEqual([false, true]);
    expect(new Set(said.map(({ messageId }) => messageId)).size).toBe(1);
  });

  test('is not repeated when it may have arrived', async () => {
    const { run, said, surroundings } = sayer(() => {
      if (said.length === 1) throw new Error('killed');
      return { state: 'failed', reason: 'it may have it', result: { mayHaveArrived: true } };
    });
    await run('Build it.');
    await run('Build it.');
    await run('Build it.');
    expect(said).toHaveLength(2);
    expect(surroundings.logged).toContain('warn not sending the --prompt message again: it may have it');
  });

  test('is retried by the next runner after a refusal', async () => {
    let isRefused = true;
    const { run, said } = sayer(() =>
      isRefused ? { state: 'failed', reason: 'it has ended' } : { state: 'delivered' },
    );
    await run('Build it.');
    isRefused = false;
    await run('Build it.');
    await run('Build it.');
    expect(said).toHaveLength(2);
  });
});
