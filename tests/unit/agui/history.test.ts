import type { Item, Turn } from '@interlude/protocol/read-models';
import { describe, expect, test } from 'vitest';
import { ClientParts, historyOf } from '@/lib/server/agui/client-parts';

const said = (id: string, text: string, more: object = {}) =>
  ({ kind: 'message', id, role: 'assistant', name: null, text, clientId: null, ...more }) as unknown as Item;
const called = (id: string, result: string | null) =>
  ({ kind: 'tool-call', id, name: 'Bash', argsText: '{}', result }) as unknown as Item;
const turn = (...items: Item[]) => ({ items }) as unknown as Turn;

describe('a history', () => {
  test('lists messages under their clients’ ids', () => {
    const parts = new ClientParts();
    const own = said('uuid', 'Hi', { role: 'user', clientId: 'agui:u1', name: 'operator' });
    expect(historyOf([turn(own), turn(said('m1', 'Hello'), called('c1', 'ok'), called('c2', null))], parts)).toEqual([
      { id: 'u1', role: 'user', content: 'Hi', name: 'operator' },
      { id: 'm1', role: 'assistant', content: 'Hello' },
      {
        id: 'c1',
        role: 'assistant',
        toolCalls: [{ id: 'c1', type: 'function', function: { name: 'Bash', arguments: '{}' } }],
      },
      { id: 'c1:result', role: 'tool', toolCallId: 'c1', content: 'ok' },
      {
        id: 'c2',
        role: 'assistant',
        toolCalls: [{ id: 'c2', type: 'function', function: { name: 'Bash', arguments: '{}' } }],
      },
    ]);
    expect(parts.of.text.about('m1')).toMatchObject({ clientLength: 5, logLength: 5 });
    expect([parts.hasId('u1'), parts.isAnswered('c1'), parts.isAnswered('c2')]).toEqual([true, true, false]);
  });

  test('continues after the cut of a long text', () => {
    const parts = new ClientParts();
    historyOf([turn(said('m1', 'Hello', { cut: 100 }))], parts);
    expect(parts.of.text.about('m1')).toMatchObject({ clientLength: 105, logLength: 105 });
  });

  test('keeps the newest that fit a frame', () => {
    const long = Array.from({ length: 30 }, (_, index) => said(`m${index}`, 'x'.repeat(100_000)));
    const ids = historyOf([turn(...long)], new ClientParts()).map(({ id }) => id);
    expect(ids.length).toBeLessThan(30);
    expect(ids.at(-1)).toBe('m29');
    expect(ids[0]).toBe(`m${30 - ids.length}`);
  });

  test('has unique ids', () => {
    const ids = historyOf([turn(called('m1', 'ok'), said('m1', 'Hello'))], new ClientParts()).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
