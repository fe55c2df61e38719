import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { ToolInput } from '@/components/transcript/tool-input';
import { mainArgument } from '@/components/transcript/tool-words';
import { zeroWidthCharacters } from '../support/hostile-texts';
import { renderedText, unescaped } from '../support/rendered-text';

const shown = (args: unknown, name = 'TodoWrite') =>
  renderToStaticMarkup(<ToolInput call={{ name, args, argsText: '' }} />);
const line = (args: unknown) => mainArgument({ name: 'TodoWrite', args, argsText: '' });
const items = (markup: string) =>
  [...markup.matchAll(/<li[^>]*>(.*?)<\/li>/gs)].map(([, one]) => unescaped((one ?? '').replace(/<[^>]*>/g, '')));

const todos = [
  { content: 'Read the code', status: 'completed', activeForm: 'Reading the code' },
  { content: 'Run the tests', status: 'in_progress', activeForm: 'Running the tests' },
  { content: 'Write it down', status: 'pending', activeForm: 'Writing it down' },
];

describe('a to-do list', () => {
  it('is a checklist with states in words', () => {
    const markup = shown({ todos });
    expect(markup).toContain('<ul');
    expect(items(markup)).toEqual([
      'done: Read the code',
      'in progress: Run the testsRunning the tests',
      'to do: Write it down',
    ]);
  });

  it('is summarized on the call’s line with the current item', () => {
    expect(line({ todos })).toBe('1 of 3 done: Running the tests');
    expect(line({ todos: todos.slice(2) })).toBe('0 of 1 done');
    expect(line({ todos: [] })).toBe('0 of 0 done');
  });

  it('shows invisible characters as symbols, and markup as text', () => {
    const markup = shown({ todos: [{ content: 'a\u202eb <img src=x>', status: 'pending' }] });
    expect(markup).toContain('⟨RLO⟩');
    expect(markup).not.toContain('<img');
  });

  it('shows the call’s other arguments', () => {
    expect(renderedText(shown({ todos, command: 'rm -rf ~' }))).toContain('rm -rf ~');
  });

  it.each([
    ['no list', { todos: 'all' }],
    ['a state there is not', { todos: [{ content: 'a', status: 'soon' }] }],
    ['no words', { todos: [{ status: 'pending' }] }],
    ['more of each than is shown', { todos: [{ content: 'a', status: 'pending', note: 'hidden' }] }],
    ['nothing at all', { todos: [null] }],
    ['no input', null],
  ])('shows malformed arguments verbatim: %s', (_what, args) => {
    expect(shown(args)).toBe(shown(args, 'Bash'));
    expect(shown(args)).not.toContain('<li');
  });

  it('has a bounded number of elements', () => {
    for (const content of ['x', zeroWidthCharacters(2_000), 'אa'.repeat(400), 'a\n'.repeat(900)]) {
      const markup = shown({
        todos: Array.from({ length: 5_000 }, () => ({ content, status: 'in_progress', activeForm: content })),
      });
      expect(markup.match(/<\w/g)?.length).toBeLessThan(2_500);
      expect(markup).toContain('Show 50 of 4,950 more');
    }
  });
});
