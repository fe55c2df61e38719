import { MAX_REQUEST_LINE } from '@interlude/protocol/limits';
import { requestPreview } from '@interlude/protocol/projections/open-requests';
import { describe, expect, it } from 'vitest';

const permission = (input: unknown, more: object = {}) => requestPreview({ kind: 'permission', input, ...more });

describe('requestPreview', () => {
  it.each([
    ['a command', { description: 'Clean', command: 'rm -rf build' }, 'rm -rf build'],
    ['a file', { file_path: '/a/b.ts', old_string: 'x', new_string: 'y' }, '/a/b.ts'],
    ['an unknown tool', { depth: 3, target: 'staging' }, 'staging'],
    ['an input that is a text', 'make all', 'make all'],
    ['several lines', { command: 'cd a &&\n\n  make' }, 'cd a && make'],
    ['an input without text', { depth: 3 }, null],
    ['an empty command', { command: '  ', description: 'Clean' }, 'Clean'],
    ['no input', null, null],
  ])('shows the main text of %s on one line', (_name, input, line) => {
    expect(permission(input).line).toBe(line);
  });

  it('has a short input as a whole, with its options', () => {
    const input = { command: 'rm -rf build', timeout: 5 };
    const options = [{ id: 'o1', label: 'Allow once', kind: 'allow' }];
    const about = { tool: 'Bash', line: 'rm -rf build' };
    expect(permission(input, { tool_name: 'Bash' })).toEqual({ ...about, input });
    expect(permission(input, { tool_name: 'Bash', options })).toEqual({ ...about, input, options });
  });

  it.each([
    ['long text', { command: 'x'.repeat(MAX_REQUEST_LINE + 1) }],
    ['a long key', { ['x'.repeat(MAX_REQUEST_LINE)]: 'ls' }],
    ['many values', { list: Array.from({ length: 20 }, (_, index) => index) }],
  ])('leaves out an input with %s', (_name, input) => {
    const preview = permission(input);
    expect(preview.input).toBeUndefined();
    expect(preview.line?.length ?? 0).toBeLessThanOrEqual(MAX_REQUEST_LINE);
  });

  it('has the first question, and no input, for a question', () => {
    const input = { questions: [{ question: 'Which database?', options: [] }, { question: 'When?' }] };
    expect(requestPreview({ kind: 'question', input })).toEqual({ tool: null, line: 'Which database?' });
  });
});
