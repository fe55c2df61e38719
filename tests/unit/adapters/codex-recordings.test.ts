import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import type { RecordedLine } from '@interlude/runner/adapters/recordings';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { describe, expect, test } from 'vitest';
import { eventLines, expectValidEvents, playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

describe.each(recordingsOf('codex'))('the recording %s', (name) => {
  const lines = recordedLines('codex', name);

  test('matches its golden file', async () => {
    const told = playRecorded('codex', lines);
    expectValidEvents(told);
    await expect(eventLines(told)).toMatchFileSnapshot(`../../fixtures/golden/codex/${name}.txt`);
  });

  test('is well formed when cut at any frame', () => {
    for (let index = 0; index <= lines.length; index++) expectValidEvents(playRecorded('codex', lines.slice(0, index)));
  });

  test('drops every doubled frame', () => {
    const told = playRecorded('codex', lines);
    const doubled = playRecorded(
      'codex',
      lines.flatMap((line) => [line, line]),
    );
    expectValidEvents(doubled);
    // Output of `codex exec` has no ids to detect a repeated line; neither have deltas, which the end of their item
    // replaces.
    if (name === 'exec-json') return;
    const kept = (events: typeof told) =>
      eventLines(events.filter(({ event }) => event.name !== CUSTOM.taskOutput))
        .split('\n')
        .filter((line) => !/CONTENT|_END|CUSTOM codex:/.test(line));
    expect(kept(doubled)).toEqual(kept(told));
    expect(textsOf(doubled)).toEqual(textsOf(told));
  });

  test('is well formed with garbage between frames', () => {
    const garbage = GARBAGE.map((msg, index) => ({ dir: index % 3 === 0 ? 'out' : 'in', msg }));
    const mixed = lines.flatMap(({ at, fields }, index): RecordedLine[] => [
      { at, fields },
      { at, fields: garbage[index % garbage.length] ?? {} },
    ]);
    expectValidEvents(playRecorded('codex', mixed));
  });
});

test('bounds Codex frames with 10 MB of text', () => {
  const huge = 'ä\u0000'.repeat(5 * 1024 * 1024);
  const kinds = new Map<string, { lines: RecordedLine[]; at: number }>();
  for (const name of recordingsOf('codex')) {
    const lines = recordedLines('codex', name);
    for (const [at, line] of lines.entries()) {
      if (isGrowing(line.fields.msg)) kinds.set(kindOf(line), { lines, at });
    }
  }
  expect(kinds.size).toBeGreaterThan(5);
  for (const { lines, at } of kinds.values()) {
    const grown = lines.map((line, index) =>
      index === at ? { ...line, fields: { ...line.fields, msg: grow(line.fields.msg, huge) } } : line,
    );
    expectValidEvents(playRecorded('codex', grown));
  }
});

/** Final text of each message. */
function textsOf(told: readonly EmittedEvent[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { event } of told) {
    if (!event.type.endsWith('_CONTENT')) continue;
    const id = String(event.messageId);
    const before = event.metadata?.interlude?.whole === true ? '' : (texts.get(id) ?? '');
    texts.set(id, before + String(event.delta));
  }
  return texts;
}

function kindOf(line: RecordedLine | undefined): string {
  const { method, type, params, item } = fieldsOf(line?.fields.msg);
  return [method, type, fieldsOf(fieldsOf(params).item).type, fieldsOf(item).type].join(' ');
}

function isGrowing(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, one]) => GROWING.has(name) || isGrowing(one));
}

/** Lengthens the agent's texts, commands and output in a message. */
function grow(value: unknown, text: string): unknown {
  if (Array.isArray(value)) return value.map((one) => grow(one, text));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, GROWING.has(name) ? text : grow(one, text)]),
  );
}

const GROWING = new Set(['text', 'delta', 'aggregatedOutput', 'aggregated_output', 'diff']);

const THREAD = { threadId: 't', turnId: 'u' };
const GARBAGE: readonly unknown[] = [
  null,
  7,
  'text',
  [],
  {},
  { id: null, result: {} },
  { id: 0 },
  { id: 0, error: 'none' },
  { id: {}, method: 7 },
  { method: 'turn/started' },
  { method: 'turn/started', params: { threadId: 7, turn: [] } },
  { method: 'turn/started', params: { threadId: 't', turn: { id: 'u', rootTurnId: 'u' } } },
  { method: 'item/started', params: { ...THREAD, item: { id: 'i', type: 'commandExecution', commandActions: 7 } } },
  { method: 'item/completed', params: { ...THREAD, item: { id: 'i', type: 'fileChange', changes: [7, { path: 7 }] } } },
  {
    method: 'item/completed',
    params: { ...THREAD, item: { id: 'p', type: 'mcpToolCall', arguments: 'x', result: 7 } },
  },
  { method: 'item/completed', params: { ...THREAD, item: { type: 'agentMessage', text: [] } } },
  { method: 'item/agentMessage/delta', params: { ...THREAD, itemId: {}, delta: 7 } },
  { method: 'turn/plan/updated', params: { ...THREAD, plan: [7, { step: 7 }] } },
  { method: 'thread/goal/updated', params: { threadId: 't', goal: 'x' } },
  { id: 'x', method: 'item/commandExecution/requestApproval', params: { ...THREAD, availableDecisions: [7, {}, ''] } },
  { id: 'y', method: 'item/tool/requestUserInput', params: { ...THREAD, questions: 'none' } },
  { method: 'thread/status/changed', params: { threadId: 't', status: 'odd' } },
];
