import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { MAX_ITEM_TEXT, MAX_PENDING_REQUESTS, MAX_TURN_ITEMS, MAX_TURN_TEXT } from '@interlude/protocol/limits';
import type { ShownItems } from '@interlude/protocol/projections/item-draft';
import { foldItems, foldShownItems } from '@interlude/protocol/projections/items';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { settleTurn } from '@interlude/protocol/projections/transcript';
import type { Item, MessageItem, ReasoningItem, ToolCallItem } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aTurn } from '../../ui/rows';
import { custom, says } from './session-story';

const entries = (...events: AgUiEvent[]): EventEntry[] =>
  events.map((event, index) => ({ position: String(index + 1), occurredAt: index + 1, receivedAt: 1, event }));

const content = (delta: string, whole = false): AgUiEvent => ({
  type: 'TEXT_MESSAGE_CONTENT',
  messageId: 'm1',
  delta,
  ...(whole ? { metadata: { interlude: { whole: true as const } } } : {}),
});

const said = (messageId: string, delta: string) => ({ type: 'TEXT_MESSAGE_CHUNK', messageId, delta });

describe('items', () => {
  it('append deltas and replace them by a whole text', () => {
    const [start] = says('m1', '') as [AgUiEvent];
    expect(foldItems([], entries(start, content('Hel'), content('lo')))).toMatchObject([
      { text: 'Hello', streaming: true },
    ]);
    const half = foldItems([], entries(start, content('Hel')));
    expect(foldItems(half, entries(content('Hello', true)))).toMatchObject([{ text: 'Hello' }]);
  });

  it.each([['..'], ['m'.repeat(600)]])('show what was said and called, whatever its id looks like: %.9s', (id) => {
    const call: AgUiEvent = { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'ls' };
    expect(foldItems([], entries(said(id, 'Hello'), call))).toMatchObject([{ id, text: 'Hello' }, { name: 'ls' }]);
  });

  it('keep unchanged items as the same objects', () => {
    const before = foldItems([], entries(...says('m0', 'First'), ...says('m1', 'Second')));
    const after = foldItems(before, entries(content('!')));
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
  });

  it('show complete tool arguments', () => {
    const call = (events: AgUiEvent[]) =>
      foldItems([], entries({ type: 'TOOL_CALL_START', toolCallId: 't', toolCallName: 'Bash' }, ...events))[0];
    const args = (delta: string): AgUiEvent => ({ type: 'TOOL_CALL_ARGS', toolCallId: 't', delta });
    expect(call([args('{"command":')])).toMatchObject({ args: null, argsText: '{"command":', status: 'running' });
    expect(call([args('{"command":'), args('"ls"}')])).toMatchObject({ args: { command: 'ls' } });
  });

  it('read a result and a failure from TOOL_CALL_END', () => {
    const start: AgUiEvent = { type: 'TOOL_CALL_START', toolCallId: 't', toolCallName: 'Bash' };
    expect(foldItems([], entries(start, { type: 'TOOL_CALL_END', toolCallId: 't', result: 'ok' }))).toMatchObject([
      { status: 'completed', result: 'ok', endedAt: 2 },
    ]);
    expect(
      foldItems([], entries(start, { type: 'TOOL_CALL_RESULT', toolCallId: 't', content: 'no', isError: true })),
    ).toMatchObject([{ status: 'failed', result: 'no' }]);
  });

  it('keep the first receipt time of a repeated request', () => {
    const [opened] = custom('request:opened', { request_id: 'q', opened_position: '1' }) as [AgUiEvent];
    const at = (position: string, receivedAt: number) => ({ position, occurredAt: 5, receivedAt, event: opened });
    expect(foldItems([], [at('1', 900), at('2', 1_900)])).toMatchObject([{ kind: 'request', at: 5, receivedAt: 900 }]);
  });

  it('show a request with its answer', () => {
    const opened = custom('request:opened', {
      request_id: 'q',
      kind: 'permission',
      tool_name: 'Bash',
      input: { command: 'rm x' },
    });
    const resolved = custom('request:resolved', { request_id: 'q', outcome: 'denied', message: 'Too risky' });
    expect(foldItems([], entries(...opened, ...resolved))).toMatchObject([
      {
        kind: 'request',
        title: 'Allow Bash?',
        input: { command: 'rm x' },
        outcome: 'denied',
        message: 'Too risky',
        resolvedAt: 2,
      },
    ]);
  });

  it('show a run error only outside any turn', () => {
    const error: AgUiEvent = { type: 'RUN_ERROR', message: 'boom' };
    expect(foldItems([], entries(error))).toEqual([]);
    expect(foldItems([], entries(error), true)).toMatchObject([{ kind: 'notice', text: 'boom', tone: 'error' }]);
  });

  it('are empty for events without content', () => {
    expect(
      foldItems(
        [],
        entries(
          { type: 'RAW' },
          { type: 'STATE_DELTA', delta: [] },
          { type: 'CUSTOM', name: 'x' },
          { type: 'TEXT_MESSAGE_END' },
        ),
      ),
    ).toEqual([]);
  });
});

describe('an oversized turn', () => {
  const calls = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => ({
      type: 'TOOL_CALL_START',
      toolCallId: `c${from + index}`,
      toolCallName: 'Bash',
    }));
  const MORE = MAX_TURN_ITEMS + 300;

  it('shows the newest items and counts the omitted ones', () => {
    const { items, omitted } = foldShownItems({ items: [] }, entries(...calls(0, MORE)), false);
    expect([items.length, omitted, items[0]?.id]).toEqual([MAX_TURN_ITEMS, 300, 'c300']);
  });

  it('does not depend on batches', () => {
    const all = entries(
      ...calls(0, MORE),
      { type: 'TOOL_CALL_RESULT', toolCallId: 'c7', content: 'of one that is not shown any more' },
      { type: 'TOOL_CALL_ARGS', toolCallId: `c${MORE - 1}`, delta: '{"a":1}' },
    );
    const half = foldShownItems({ items: [] }, all.slice(0, MAX_TURN_ITEMS + 20), false);
    expect(foldShownItems(half, all.slice(MAX_TURN_ITEMS + 20), false)).toEqual(
      foldShownItems({ items: [] }, all, false),
    );
  });

  it('is limited by its text and keeps its last item', () => {
    const most = 'x'.repeat(MAX_ITEM_TEXT);
    const ids = Array.from({ length: MAX_TURN_TEXT / MAX_ITEM_TEXT + 1 }, (_, index) => `m${index}`);
    const turn = foldShownItems({ items: [] }, entries(...ids.map((id) => said(id, most))), false);
    expect([turn.items.map(({ id }) => id), turn.omitted]).toEqual([ids.slice(1), 1]);
    const result = { type: 'TOOL_CALL_RESULT', toolCallId: 'c', content: 'x'.repeat(MAX_TURN_TEXT + 1) };
    const call = foldShownItems(
      { items: [] },
      entries(said('m', 'x'), ...calls(0, 1), { ...result, toolCallId: 'c0' }),
      false,
    );
    expect([call.items.map(({ id }) => id), call.omitted]).toEqual([['c0'], 1]);
  });
});

describe('an oversized turn with requests', () => {
  const asked = (id: string, input: unknown = {}) =>
    custom('request:opened', { request_id: id, title: 'Bash', input })[0] as AgUiEvent;
  const answered = (id: string) => custom('request:resolved', { request_id: id, outcome: 'allowed' })[0] as AgUiEvent;
  const call = (at: number): AgUiEvent => ({ type: 'TOOL_CALL_START', toolCallId: `c${at}`, toolCallName: 'Bash' });
  const calls = (count: number, from = 0) => Array.from({ length: count }, (_, index) => call(from + index));
  const shownOf = (all: readonly EventEntry[]) => foldShownItems({ items: [] }, all, false);
  const ids = (items: readonly Item[]) => items.map(({ id }) => id);

  it('shows requests before the newest items', () => {
    const open = shownOf(entries(...calls(3), asked('q1'), asked('q2'), ...calls(MAX_TURN_ITEMS + 40, 3)));
    expect([ids(open.items).slice(0, 3), open.items.length, open.omitted]).toEqual([['q1', 'q2', 'c45'], 2_000, 45]);
    const over = entries(
      ...calls(3),
      asked('q1'),
      asked('q2'),
      ...calls(MAX_TURN_ITEMS, 3),
      answered('q1'),
      call(5_000),
    );
    expect(ids(shownOf(over).items).slice(0, 3)).toEqual(['q1', 'q2', 'c6']);
  });

  it('limits the requests by number and text', () => {
    const many = Array.from({ length: MAX_PENDING_REQUESTS + 50 }, (_, index) => asked(`q${index}`));
    const { items, omitted } = shownOf(entries(...many, ...calls(MAX_TURN_ITEMS)));
    expect([items.length, omitted]).toEqual([MAX_TURN_ITEMS, MAX_PENDING_REQUESTS + 50]);
    expect([items[0]?.id, items[MAX_PENDING_REQUESTS]?.id]).toEqual(['q50', `c${MAX_PENDING_REQUESTS}`]);
    const large = { command: 'x'.repeat(MAX_TURN_TEXT / 5) };
    const some = shownOf(entries(...['q0', 'q1', 'q2', 'q3', 'q4', 'q5'].map((id) => asked(id, large))));
    expect(ids(some.items)).toEqual(['q2', 'q3', 'q4', 'q5']);
    const newest = said('m', 'x'.repeat(MAX_ITEM_TEXT));
    const whole = { command: 'x'.repeat(MAX_TURN_TEXT) };
    expect(ids(shownOf(entries(asked('q0', whole), newest)).items)).toEqual(['m']);
  });

  it('is the same from every resume point', () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.nat(400).map((count) => ({ kind: 'calls' as const, count })) },
      { weight: 2, arbitrary: fc.nat(40).map((count) => ({ kind: 'asked' as const, count })) },
      { weight: 2, arbitrary: fc.nat(60).map((id) => ({ kind: 'answered' as const, id })) },
    );
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 10, maxLength: 30, size: 'max' }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
        (steps, cuts) => {
          let [called, requested] = [0, 0];
          const all = entries(
            ...steps.flatMap((one) => {
              if (one.kind === 'answered') return [answered(`q${one.id}`)];
              if (one.kind === 'calls') return Array.from({ length: one.count }, () => call(called++));
              return Array.from({ length: one.count }, () => asked(`q${requested++}`));
            }),
          );
          const places = [0, ...cuts.map((cut) => Math.floor(cut * all.length)).sort((a, b) => a - b), all.length];
          const inParts = (between: (shown: ShownItems) => ShownItems) =>
            places
              .slice(1)
              .reduce<ShownItems>(
                (shown, to, index) => foldShownItems(between(shown), all.slice(places[index], to), false),
                {
                  items: [],
                },
              );
          const whole = shownOf(all);
          expect(inParts((shown) => shown)).toEqual(whole);
          expect(whole.items.length).toBeLessThanOrEqual(MAX_TURN_ITEMS);
          // Also with late events after the end of the turn.
          const over = inParts((shown) => ({
            ...shown,
            items: settleTurn(aTurn({ state: 'interrupted', items: shown.items })).items,
          }));
          expect([ids(over.items), over.omitted]).toEqual([ids(whole.items), whole.omitted]);
        },
      ),
      { numRuns: 25 },
    );
  });
});

describe('an oversized streamed text', () => {
  const HALF = 'x'.repeat(MAX_ITEM_TEXT / 2);
  const deltas = ['🙂', HALF, HALF.slice(1), '🙂🙂', 'more'];
  const length = deltas.join('').length;

  it.each([
    ['a message', (delta: string) => ({ type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta })],
    ['a thought', (delta: string) => ({ type: 'REASONING_MESSAGE_CHUNK', messageId: 'm', delta })],
    ['a call', (delta: string) => ({ type: 'TOOL_CALL_CHUNK', toolCallId: 'm', toolCallName: 'Bash', delta })],
  ] as [string, (delta: string) => AgUiEvent][])('shows its start and counts the rest: %s', (_, chunk) => {
    const all = entries(...deltas.map(chunk));
    const [item] = foldItems([], all) as [MessageItem | ReasoningItem | ToolCallItem];
    const text = item.kind === 'tool-call' ? item.argsText : item.text;
    expect(text === deltas.join('').slice(0, text.length)).toBe(true);
    expect(text.length).toBeLessThanOrEqual(MAX_ITEM_TEXT);
    expect([text.isWellFormed(), text.length + (item.cut ?? 0)]).toEqual([true, length]);
    const byOne = all.reduce<Item[]>((items, entry) => foldItems(items, [entry]), []);
    expect(byOne).toEqual([item]);
  });

  it('is complete again after a restart', () => {
    const start: AgUiEvent = { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' };
    const long = content(HALF + HALF + HALF);
    expect(foldItems([], entries(start, long, content('short', true)))).toMatchObject([{ text: 'short' }]);
    const [item] = foldItems([], entries(start, long, start, content('new')));
    expect(item).toMatchObject({ text: 'new' });
    expect(item).not.toHaveProperty('cut');
  });
});
