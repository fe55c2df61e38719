import type { AgUiEvent, TimedEvent } from '@interlude/protocol/ag-ui';
import { isFailure, readInsight } from '@interlude/protocol/insight';
import { ContextRatio, isContextRatioEnabled } from '@interlude/runner/host/context-ratio';
import type { LogAbout } from '@interlude/runner/logger/logger';
import { describe, expect, test } from 'vitest';

const timed = (...events: AgUiEvent[]): TimedEvent[] => events.map((event) => ({ occurredAt: 7, event }));
const call = (toolCallName: string, more: object = {}): AgUiEvent => ({
  type: 'TOOL_CALL_START',
  toolCallId: toolCallName,
  toolCallName,
  ...more,
});
const ended = (value: object = { reason: 'it was left' }): AgUiEvent => ({
  type: 'CUSTOM',
  name: 'session:ended',
  value,
});

/** A counting runner with persistent cursors. */
function runner(stored = new Map<string, string>()) {
  const told: { message: string; about: LogAbout }[] = [];
  const ratio = new ContextRatio({ log: (message, about) => void told.push({ message, about }) });
  const store = (cursors: readonly { name: string; value: string | null }[]) => {
    for (const { name, value } of cursors) value === null ? stored.delete(name) : stored.set(name, value);
  };
  return {
    told,
    stored,
    recall: () =>
      ratio.restore({ cursors: async (prefix) => new Map([...stored].filter(([name]) => name.startsWith(prefix))) }),
    passed(sessionId: string, ...said: AgUiEvent[]) {
      const { events, cursors } = ratio.count(sessionId, timed(...said));
      store(cursors);
      return events.map(({ event }) => event);
    },
    left: (reason: string) => store(ratio.abandoned(reason, 9)),
  };
}

describe('the share of context-gathering calls', () => {
  test('is logged once at the end of a session with its reason', () => {
    const { passed, told, stored } = runner();
    passed('s', call('Read'), call('Bash'));
    const [, , end] = passed('s', call('Grep'), call('Edit', { subagentRunId: 'a' }), ended());
    expect(end?.value).toEqual({ reason: 'it was left', tool_calls: { gathering: 2, all: 4 } });
    expect(passed('s', ended())).toEqual([ended()]);
    expect(told.map(({ about }) => about)).toEqual([
      {
        at: 7,
        insight: {
          signal: 'context_ratio',
          value: 0.5,
          outcome: 'ended',
          source: 'session',
          sessionId: 's',
          detail: '2 of 4 tool calls only read, listed or searched. The session’s end: it was left',
        },
      },
    ]);
    expect(stored.size).toBe(0);
  });

  test('includes calls of subagents and tools of other agents', () => {
    const { passed, told } = runner();
    const gathers = ['LS', 'web_fetch', 'WebSearch', 'read_file', 'list', 'search', 'Glob', 'view_image'];
    passed('s', ...gathers.map((name) => call(name, { subagentRunId: 'sub' })), call('apply_patch'), call(''), ended());
    expect(told[0]?.about.insight?.value).toBe(0.8);
  });

  test('is not logged without tool calls', () => {
    const { passed, left, told } = runner();
    passed('s', { type: 'RUN_STARTED', threadId: 's', runId: 'r' }, ended());
    left('the runner was stopped');
    expect(told).toEqual([]);
  });

  test('survives a kill without counting twice', async () => {
    const first = runner();
    first.passed('s', call('Read'), call('Read'));
    first.passed('other', call('Bash'));
    const second = runner(first.stored);
    await second.recall();
    second.passed('s', call('Bash'), call('Bash'), ended({ reason: 'killed', exitCode: 137 }));
    expect(second.told.map(({ about }) => [about.insight?.value, about.insight?.outcome])).toEqual([[0.5, 'crashed']]);
    expect([...second.stored.keys()]).toEqual(['tool-calls:other']);
  });

  test('is logged for open sessions when the runner closes', () => {
    const { passed, left, told, stored } = runner();
    passed('s', call('Read'));
    left('the runner was stopped');
    expect(told[0]?.about.insight).toMatchObject({ value: 1, outcome: 'left' });
    expect(stored.size).toBe(0);
  });

  test('never flags a session for attention', () => {
    const { passed, told } = runner();
    for (const value of [{}, { exitCode: 1 }, { signal: 'SIGKILL' }]) passed('s', call('Read'), ended(value));
    const read = told.map(({ about }) => readInsight(about.insight));
    expect(read.map((insight) => insight !== null && isFailure(insight, 'info'))).toEqual([false, false, false]);
  });

  test('can be disabled', () => {
    expect(
      [{}, { INTERLUDE_CONTEXT_RATIO: 'off' }, { INTERLUDE_CONTEXT_RATIO: 'on' }].map(isContextRatioEnabled),
    ).toEqual([true, false, true]);
  });
});
