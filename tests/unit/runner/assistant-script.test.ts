import { answer, GREETING, LABEL, type ScriptInput } from '@interlude/runner/cli/demo/assistant-script';
import { describe, expect, test } from 'vitest';

const said = (heard: Partial<ScriptInput>) => {
  const blocks = answer({ text: '', results: [], notices: [], ...heard });
  return {
    text: blocks.flatMap(({ type, text }) => (type === 'text' ? [String(text)] : [])).join('\n'),
    tools: blocks.flatMap(({ type, name, input }) => (type === 'tool_use' ? [{ name, input }] : [])),
  };
};

describe('the script of the demo’s answering agent', () => {
  test('says from the first word that no model is behind it, and what to try', () => {
    expect(LABEL).toMatch(/scripted agent\. No model/);
    expect(GREETING).toMatch(/^I am a scripted agent of the demo: no model/);
    expect(GREETING).toContain('Run the tests');
    expect(GREETING).toContain('Ask me a question');
  });

  test.each(['Run the tests', 'please run the TESTS now', 'do something in the background'])(
    'wants to run the tests in the background when it is told: %s',
    (text) => {
      expect(said({ text }).tools).toEqual([
        { name: 'Bash', input: { command: 'node tests.mjs', description: 'Run the tests', run_in_background: true } },
      ]);
    },
  );

  test('asks a question when it is asked to, and takes its answer', () => {
    const [call] = said({ text: 'ask me a question' }).tools;
    expect(call?.name).toBe('AskUserQuestion');
    const results = [{ tool: 'AskUserQuestion', text: 'Answered: {"Which colour?":"Blue"}', isError: false }];
    expect(said({ results })).toEqual({ text: 'Blue it is. Thank you.', tools: [] });
  });

  test.each([
    ['ran', { text: 'Command running in background', isError: false }, 'The tests run in the background'],
    ['was denied', { text: 'A person declined this.', isError: true }, 'You said no'],
    ['was answered by nobody', { text: 'Nobody answered in time. Go on.', isError: true }, 'Nobody answered in time'],
  ])('says of a command that %s what became of it, and wants nothing more', (_, result, words) => {
    const { text, tools } = said({ results: [{ tool: 'Bash', ...result }] });
    expect(text).toContain(words);
    expect(tools).toEqual([]);
  });

  test('tells the end of its task when that wakes it, though its model is reminded of other things', () => {
    const notices = [{ status: 'completed', summary: 'Background command "Run the tests" completed (exit code 0)' }];
    const text =
      '<task-notification>run the tests</task-notification><system-reminder>ask a question</system-reminder>';
    expect(said({ notices, text })).toEqual({ text: expect.stringContaining('with exit code 0'), tools: [] });
  });

  test('repeats nothing of what it is sent, and reads no more of it than it needs', () => {
    const text = `<script>${'<system-reminder>'.repeat(20_000)} \u202e hello`;
    expect(said({ text }).text).toMatch(/^I have read that\. I am scripted/);
    expect(said({ text }).text).not.toMatch(/script>|\u202e/);
  });
});
