import { fieldsOf } from '@interlude/protocol/fields';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { describe, expect, test } from 'vitest';
import { playRecorded, recordedLines } from '../../support/recordings';

/**
 * The same story recorded with each agent gives the same transcript, except for what an agent does not report. Every
 * difference is listed with its reason.
 */

/** A person's view of the agent's own session, one line each, without names and wording. */
function seen(told: readonly EmittedEvent[]): string[] {
  const lines: string[] = [];
  const [first] = told;
  let isOpen = false;
  let spoke = false;
  const say = (line: string) => {
    const where = isOpen ? '  ' : '';
    if (lines.at(-1) !== where + line) lines.push(where + line);
  };
  for (const { sessionId, event } of told) {
    if (sessionId !== first?.sessionId || event.subagentRunId !== undefined) continue;
    const { type, metadata } = event;
    const value = fieldsOf(event.value);
    if (type === 'RUN_STARTED') {
      const { turn, trigger, userMessageIds = [] } = metadata?.interlude ?? {};
      say(turn === 'user' ? `a turn answers ${userMessageIds.length}` : `a turn begins by itself: ${trigger?.kind}`);
      isOpen = true;
      spoke = false;
    } else if (type === 'TEXT_MESSAGE_START' && event.role === 'assistant') {
      if (!spoke) say(isOpen ? 'says' : 'says outside of turns');
      spoke = true;
    } else if (type === 'TOOL_CALL_START') say('calls a tool');
    else if (type === 'RUN_FINISHED' || type === 'RUN_ERROR') {
      isOpen = false;
      const how = type === 'RUN_ERROR' ? 'failed' : String(fieldsOf(event.outcome).type);
      say(`${how}${metadata?.interlude?.inferred ? ', by its silence' : ''}`);
    } else if (event.name === 'task:started') say('a task begins');
    else if (event.name === 'task:completed') {
      const exit = value.exit_code === undefined || value.exit_code === null ? '' : ` with ${value.exit_code}`;
      say(`the task ${value.status}${exit}`);
    } else if (event.name === 'request:opened') say(`asks for a ${value.kind}`);
    else if (event.name === 'request:resolved') say(String(value.outcome));
  }
  return lines;
}

const told = (recording: string) => {
  const [kind = '', name = ''] = recording.split('/');
  return seen(playRecorded(kind, recordedLines(kind, name)));
};

const ANSWER = ['a turn answers 1', '  says', 'success'];
const CALLS = ['a turn answers 1', '  says', '  calls a tool'];
const STARTS = [...CALLS, '  a task begins', 'success'];
const ENDS = 'the task failed with 3';
const WAKES = ['a turn begins by itself: task', '  says', 'success'];
const PERMITTED = [...CALLS, '  asks for a permission', '  allowed', 'success'];
const FAILS = ['a turn answers 1', 'failed'];
const INTERRUPTED = [...CALLS, 'cancelled'];

/** An agent with another transcript, and why. */
type Otherwise = [recording: string, why: string, transcript: string[]];

interface Chapter {
  transcript: string[];
  alike: string[];
  otherwise: Otherwise[];
}

const CHAPTERS: Record<string, Chapter> = {
  'a command in a turn': {
    transcript: [...CALLS, 'success'],
    alike: [
      ...['claude', 'qwen', 'gemini', 'kimi', 'codex-acp', 'opencode'].map((agent) => `acp/${agent}-tool`),
      'codex/tool',
      'opencode/tool',
    ],
    otherwise: [['acp/copilot-tool', 'it asked for permission first', PERMITTED]],
  },
  'a background command ends, the agent wakes, and the next message has its own answer': {
    transcript: [...STARTS, ENDS, ...WAKES, ...ANSWER],
    alike: ['acp/claude-air-background'],
    otherwise: [
      ['acp/qwen-background', 'it does not tell the exit code', [...STARTS, 'the task failed', ...WAKES, ...ANSWER]],
      [
        'acp/claude-background',
        'a client that offers nothing more than ACP is told of no task’s end',
        [...STARTS, 'a turn begins by itself: unknown', '  says', '  the task lost', 'success', ...ANSWER],
      ],
      ['codex/background', 'Codex is never told, and never wakes', [...STARTS, ENDS, ...ANSWER]],
      ['acp/codex-acp-background', 'nobody tells of the end', [...STARTS, ...ANSWER, 'the task lost']],
      ['acp/gemini-background', 'nobody tells of the end', [...STARTS, ...ANSWER, 'the task lost']],
      ['acp/kimi-background', 'its own turn is not on the wire', [...STARTS, ...ANSWER, 'the task lost']],
      ['acp/opencode-background', 'it has no background commands', [...CALLS, 'success', ...ANSWER]],
      [
        'opencode/background',
        'what runs in the background is a subagent, and nobody wrote a second message',
        [...STARTS, 'the task completed', ...WAKES],
      ],
      [
        'agui/ambient-background',
        'it tells no exit code; a second task ends whose start it never told',
        [...STARTS, 'the task completed', ...WAKES, 'the task completed', ...ANSWER],
      ],
      [
        'agentapi/background',
        'a screen has no calls and no tasks, and its turns end by silence',
        [
          ...['a turn answers 1', '  says', 'success, by its silence'],
          ...['a turn begins by itself: unknown', '  says', 'success, by its silence'],
          ...['a turn answers 1', '  says', 'success, by its silence'],
        ],
      ],
    ],
  },
  'a permission': {
    transcript: PERMITTED,
    alike: [
      ...['claude', 'qwen', 'gemini', 'kimi', 'codex-acp', 'copilot', 'opencode'].map(
        (agent) => `acp/${agent}-permission`,
      ),
      'codex/permission',
      'opencode/permission',
    ],
    otherwise: [],
  },
  'an interrupt, and a message behind it': {
    transcript: [...INTERRUPTED, ...ANSWER],
    alike: ['acp/codex-acp-interrupt', 'acp/opencode-interrupt', 'opencode/interrupt'],
    otherwise: [
      [
        'codex/interrupt',
        'the command that ran goes on in the background; nobody wrote a second message',
        [...CALLS, '  a task begins', 'cancelled', 'the task failed with 5'],
      ],
      [
        'acp/copilot-interrupt',
        'it asked for permission first',
        [...CALLS, '  asks for a permission', '  allowed', 'cancelled', ...ANSWER],
      ],
      ['acp/qwen-interrupt', 'the interrupt came when the turn was over', [...CALLS, 'success', ...ANSWER]],
    ],
  },
  'a model that fails, and a message behind it': {
    transcript: [...FAILS, ...ANSWER],
    alike: ['acp/qwen-error', 'acp/gemini-error', 'acp/opencode-error', 'opencode/error'],
    otherwise: [
      ['acp/claude-error', 'it says the error as a text, too', ['a turn answers 1', '  says', 'failed', ...ANSWER]],
      ['acp/codex-acp-error', 'it says the error as a text, too', ['a turn answers 1', '  says', 'failed', ...ANSWER]],
      ['acp/copilot-error', 'it says the error as a text, and that all is well', [...ANSWER, ...ANSWER]],
      ['codex/error', 'the second message failed as well', [...FAILS, ...FAILS]],
    ],
  },
};

describe.each(Object.entries(CHAPTERS))('%s', (_, { transcript, alike, otherwise }) => {
  test.each(alike)('%s', (recording) => {
    expect(told(recording)).toEqual(transcript);
  });

  test.each(otherwise)('%s: %s', (recording, _why, own) => {
    expect(told(recording)).toEqual(own);
    expect(own).not.toEqual(transcript);
  });
});
