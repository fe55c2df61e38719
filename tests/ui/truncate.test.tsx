import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { estimateTurnHeight } from '@/components/transcript/use-turn-rows';
import { countLines, formatLength } from '@/components/ui/format-size';
import { Markdown } from '@/components/ui/markdown/markdown';
import { TerminalText } from '@/components/ui/terminal-text';
import { foldLines, lastPart, TRUNCATED_LENGTH } from '@/components/ui/truncate';
import { ErrorText } from '@/components/ui/verbatim-text';
import { aMessage, aTurn } from './rows';

const LINE = 'x1y2 '.repeat(10_000);

describe('a very long line', () => {
  it('is folded, unlike the lines around it', () => {
    const { text, fullLength } = foldLines(`before\n\n${LINE}\n\nafter`);
    expect(text).toBe(`before\n\n${LINE.slice(0, TRUNCATED_LENGTH)}…\n\nafter`);
    expect(fullLength).toBe(LINE.length + 15);
  });

  it.each([
    ['lines that people write', 'A sentence or two. '.repeat(20).concat('\n').repeat(200)],
    ['code', `\`\`\`json\n${LINE}\n\`\`\``],
    ['code in a list', `- a\n  ~~~\n  ${LINE}\n  ~~~`],
    ['code with another fence in it', `\`\`\`\`\n\`\`\`\n${LINE}\n\`\`\`\``],
  ])('%s are not folded', (_what, text) => expect(foldLines(text)).toEqual({ text, fullLength: null }));

  it('is folded after a code block', () => {
    expect(foldLines(`\`\`\`\na\n\`\`\`\n${LINE}`).text.length).toBeLessThan(1_000);
  });

  it('is not cut within a character', () => {
    expect(foldLines('👍'.repeat(5_000)).text.isWellFormed()).toBe(true);
    expect(foldLines(`a${'👍'.repeat(5_000)}`).text.isWellFormed()).toBe(true);
  });

  it('shows its length and a button for the rest', () => {
    const markup = renderToStaticMarkup(<Markdown text={LINE} />);
    expect(markup.replace(/<[^>]*>/g, '').length).toBeLessThan(1_200);
    expect(markup).toContain('Show all (50 kB)');
    expect(markup).toContain('Copy all');
  });

  it('has a row weight that counts the shown part only', () => {
    const height = (text: string) => estimateTurnHeight(aTurn({ items: [aMessage({ text })] }));
    expect(height(LINE)).toBeLessThan(500);
    expect(height(`${LINE}\n`.repeat(20))).toBeLessThan(8_000);
    expect(height('A line.\n'.repeat(10_000))).toBeGreaterThan(20_000);
  });
});

it('TerminalText folds one long line to about the size of many short ones', () => {
  const markup = renderToStaticMarkup(<TerminalText text={LINE} label="output" />);
  expect(markup.replace(/<[^>]*>/g, '').length).toBeLessThan(2_000);
  expect(markup).toContain('Show all 49,999 characters');
  expect(renderToStaticMarkup(<TerminalText text={'word '.repeat(300)} label="output" />)).not.toContain('Show all');
});

describe('ErrorText', () => {
  it('shows a short error whole', () => {
    expect(renderToStaticMarkup(<ErrorText text="No disk left" />)).toContain('No disk left');
    expect(renderToStaticMarkup(<ErrorText text="No disk left" />)).not.toContain('<button');
  });

  it.each([
    ['in one line', LINE],
    ['in many', 'at a\n'.repeat(10_000)],
  ])('folds a long error (%s) and can copy it', (_what, text) => {
    const markup = renderToStaticMarkup(<ErrorText text={text} />);
    expect(markup.replace(/<[^>]*>/g, '').length).toBeLessThan(1_000);
    expect(markup).toContain('Show more: ');
    expect(markup).toContain('Copy error');
  });
});

it.each([
  [1, '1 character'],
  [999, '999 characters'],
  [50_000, '50 kB'],
  [999_499, '999 kB'],
  [1_400_000, '1.4 MB'],
])('%i characters are %s', (length, words) => expect(formatLength(length)).toBe(words));

describe('lastPart', () => {
  it.each([
    ['a\nb\nc', 3, 'a\nb\nc', false],
    ['a\nb\nc', 2, 'b\nc', true],
    ['a\nb\nc', 1, 'c', true],
    ['\n\n', 2, '\n', true],
    ['', 2, '', false],
    ['\na', 2, '\na', false],
  ])('%j limited to %i lines is %j', (text, lines, shown, isCut) => {
    expect(lastPart(text, { lines, characters: 100 })).toEqual({ text: shown, isCut });
  });

  it('limits characters, too, and splits no surrogate pair', () => {
    expect(lastPart('abcdef', { lines: 9, characters: 3 })).toEqual({ text: 'def', isCut: true });
    expect(lastPart('ab😀f', { lines: 9, characters: 2 })).toEqual({ text: 'f', isCut: true });
  });

  it('countLines counts line breaks plus one', () => {
    expect(countLines('')).toBe(1);
    expect(countLines('a\nb\n')).toBe(3);
  });
});
