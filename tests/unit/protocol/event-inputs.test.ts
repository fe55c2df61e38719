import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { endsSession, inputsOf, kindOf } from '@interlude/protocol/lifecycle/event-inputs';
import { expect, test } from 'vitest';

/** `event → kind input id`, several by commas; an event with a slash is a CUSTOM one with that status or outcome. */
const ROWS = `
  RUN_STARTED → turn begin r
  RUN_FINISHED → turn end r
  RUN_ERROR → turn end r
  TEXT_MESSAGE_START → text start m
  TEXT_MESSAGE_CONTENT → text delta m
  TEXT_MESSAGE_CHUNK → text delta m
  TEXT_MESSAGE_END → text end m
  REASONING_MESSAGE_START → thought start m
  REASONING_MESSAGE_CONTENT → thought delta m
  REASONING_MESSAGE_CHUNK → thought delta m
  REASONING_MESSAGE_END → thought end m
  TOOL_CALL_START → call start c
  TOOL_CALL_ARGS → call args c
  TOOL_CALL_CHUNK → call start c, call args c
  TOOL_CALL_END → call end c
  TOOL_CALL_RESULT → call result c
  STEP_STARTED → bracket start ["step","p",null]
  STEP_FINISHED → bracket end ["step","p",null]
  REASONING_START → bracket start ["span","m",null]
  REASONING_END → bracket end ["span","m",null]
  ${CUSTOM.taskStarted}/ → task start t
  ${CUSTOM.taskProgress}/ → task report t
  ${CUSTOM.taskUpdated}/running → task report t
  ${CUSTOM.taskStarted}/failed → task start t, task end t
  ${CUSTOM.taskUpdated}/cancelled → task end t
  ${CUSTOM.taskUpdated}/lost → task presume t
  ${CUSTOM.taskCompleted}/completed → task end t
  ${CUSTOM.taskCompleted}/ → task end t
  ${CUSTOM.taskCompleted}/lost → task presume t
  ${CUSTOM.requestOpened}/ → request ask q
  ${CUSTOM.requestResolved}/allowed → request answer q
  ${CUSTOM.requestResolved}/answered → request answer q
  ${CUSTOM.requestResolved}/unknown → request pass q
  ${CUSTOM.requestResolved}/cancelled → request cut q
  ${CUSTOM.requestResolved}/expired → request cut q
  ${CUSTOM.notice}/ →
  STATE_SNAPSHOT →
  RAW →`;

const IDS = { runId: 'r', messageId: 'm', toolCallId: 'c', stepName: 'p' };
const rows = ROWS.trim()
  .split('\n')
  .map((row) => row.split('→').map((part) => part.trim()) as [string, string]);

function eventOf(named: string, more: object = {}): AgUiEvent {
  const [name = '', said = ''] = named.split('/');
  if (!named.includes('/')) return { type: name, ...IDS, ...more };
  return { type: 'CUSTOM', name, value: { task_id: 't', request_id: 'q', status: said, outcome: said }, ...more };
}

const said = (event: AgUiEvent) => inputsOf(event).map(({ kind, input, id }) => `${kind} ${input} ${id}`);

test.each(rows)('inputsOf reads %s as %s', (named, expected) => {
  expect(said(eventOf(named)).join(', ')).toBe(expected);
});

test('inputsOf reads a complete text as `whole`', () => {
  const metadata = { interlude: { whole: true } };
  expect(said(eventOf('TEXT_MESSAGE_CONTENT', { metadata }))).toEqual(['text whole m']);
  expect(said(eventOf('REASONING_MESSAGE_CHUNK', { metadata }))).toEqual(['thought whole m']);
});

test('inputsOf reads a result in a call’s end', () => {
  expect(said(eventOf('TOOL_CALL_END', { result: 'x' }))).toEqual(['call end c', 'call result c']);
});

test('inputsOf restarts a presumed lost task only on the server’s event', () => {
  const metadata = { interlude: { presumed: true } };
  expect(said(eventOf(`${CUSTOM.taskUpdated}/running`, { metadata }))).toEqual(['task start t']);
});

test('inputsOf returns the subagent and the task run', () => {
  expect(inputsOf(eventOf('TOOL_CALL_START', { subagentRunId: 's' }))[0]?.by).toBe('s');
  const value = { task_id: 't', run_id: 'a' };
  expect(inputsOf({ type: 'CUSTOM', name: CUSTOM.taskStarted, value })[0]?.runId).toBe('a');
});

test('inputsOf separates the steps of subagents', () => {
  const subagentRunId = 's';
  expect(
    ['SUBAGENT_STARTED', 'SUBAGENT_FINISHED', 'SUBAGENT_ERROR', 'STEP_STARTED', 'REASONING_START'].flatMap((type) =>
      said(eventOf(type, { subagentRunId })),
    ),
  ).toEqual([
    'bracket start ["subagent","s",null]',
    'bracket end ["subagent","s",null]',
    'bracket end ["subagent","s",null]',
    'bracket start ["step","p","s"]',
    'bracket start ["span","m",null]',
  ]);
});

test('inputsOf ignores events without an id, except for turns', () => {
  for (const [named] of rows) {
    const event = named.includes('/') ? eventOf(named, { value: {} }) : { type: named };
    expect(said(event).join()).toBe(
      named.startsWith('RUN_') ? `turn ${named === 'RUN_STARTED' ? 'begin' : 'end'} null` : '',
    );
  }
});

test('kindOf returns the kind of an event type', () => {
  const types = [
    'RUN_ERROR',
    'TEXT_MESSAGE_CHUNK',
    'REASONING_MESSAGE_END',
    'TOOL_CALL_RESULT',
    'REASONING_END',
    'RAW',
  ];
  expect(types.map(kindOf)).toEqual(['turn', 'text', 'thought', 'call', 'bracket', null]);
});

test('endsSession recognizes the end of the process', () => {
  expect(endsSession({ type: 'CUSTOM', name: CUSTOM.sessionEnded, value: {} })).toBe(true);
  expect(endsSession({ type: 'RUN_ERROR', message: '' })).toBe(false);
});
