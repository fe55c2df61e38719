import { Lexer } from 'marked';
import { describe, expect, it, vi } from 'vitest';
import {
  inlineWork,
  LIGHT_CHARACTERS,
  markdownWork,
  NOTHING_PARSED,
  parseBlocks,
  parseLight,
  textsParsedAtOnce,
  withPart,
} from '@/components/ui/markdown/parse';
import { hostileTexts } from '../support/hostile-texts';

const blocksOf = (text: string) => parseBlocks(text) ?? [];
const whole = (text: string) => withPart(NOTHING_PARSED, text, blocksOf(text), false);

describe('parsing a hostile text', () => {
  it('does bounded inline work while the page renders', () => {
    const inlineTokens = vi.spyOn(Lexer.prototype, 'inlineTokens');
    for (const { name, text } of hostileTexts(LIGHT_CHARACTERS)) {
      inlineTokens.mockClear();
      parseLight(NOTHING_PARSED, text, false);
      const work = inlineTokens.mock.calls.reduce((sum, [src]) => sum + inlineWork(src), 0);
      expect(work, name).toBeLessThan(2_000_000);
    }
    inlineTokens.mockRestore();
  });

  it('leaves a long text to the worker', () => {
    expect(parseLight(NOTHING_PARSED, 'a'.repeat(LIGHT_CHARACTERS + 1), false)).toBeNull();
  });

  it('keeps code full of marks in one block', () => {
    const code = `\`\`\`ts\n${'a[b] = &c | d; // *e* #f <g> @h\n'.repeat(600)}\`\`\`\n`;
    const blocks = blocksOf(`Here *it* is:\n\n${code}\n${'*~`'.repeat(2_000)}`);
    expect(blocks.filter(({ type }) => type === 'code').map(({ raw }) => raw.trim())).toEqual([code.trim()]);
  });

  it('stops at the number of elements that a page lays out', () => {
    const { isFull, ends } = whole('a\n\n'.repeat(20_000));
    expect(isFull).toBe(true);
    expect(ends.at(-1)).toBeLessThan(30_000);
  });

  it('cuts the rows of a long table and keeps what follows it', () => {
    const rows = Array.from({ length: 5_000 }, (_, index) => `| row ${index} | ${index} |\n`).join('');
    const blocks = blocksOf(`# Rows\n\n| a | b |\n|---|---|\n${rows}\nThe *end*.`);
    const table = blocks.find(({ type }) => type === 'table');
    expect(table).toMatchObject({ rowCount: 5_000 });
    expect((table as { rows?: unknown[] }).rows?.length).toBeLessThan(1_000);
    expect(blocks.at(-1)).toMatchObject({ type: 'paragraph', text: 'The *end*.' });
  });
});

describe('textsParsedAtOnce', () => {
  it('selects short texts, newest first, until their sum is too costly', () => {
    const texts = Array.from({ length: 200 }, (_, index) => `${index}: ${'words of an answer. '.repeat(100)}`);
    const parsed = textsParsedAtOnce(['x'.repeat(LIGHT_CHARACTERS + 1), ...texts]);
    expect(parsed.has('x'.repeat(LIGHT_CHARACTERS + 1))).toBe(false);
    expect(parsed.has(texts[0] as string)).toBe(true);
    expect(parsed.has(texts.at(-1) as string)).toBe(false);
    expect(parsed.size).toBeGreaterThan(20);
  });

  it('weighs texts by what the parser has to search', () => {
    expect(markdownWork('*`~'.repeat(1_000))).toBeGreaterThan(100 * markdownWork('words '.repeat(500)));
  });
});
