import { Lexer } from 'marked';
import { describe, expect, it, vi } from 'vitest';
import { inlineWork } from '@/components/ui/markdown/inline-work';
import { markdownWork, textsParsedAtOnce } from '@/components/ui/markdown/markdown-work';
import { isParsed, NOTHING_SETTLED, parse, parseFurther, WINDOW } from '@/components/ui/markdown/parse';
import { hostileTexts } from '../support/hostile-texts';

/** Signs looked at: what a window may be, and what is within its emphasis looked at again. */
const MOST_WORK = 10_000_000;

describe('a hostile text', () => {
  it('is looked at no more in any step than in some ten milliseconds, wherever its windows begin', () => {
    const inlineTokens = vi.spyOn(Lexer.prototype, 'inlineTokens');
    // Of a length that no window divides, so that each begins with another sign of the three.
    const texts = [...hostileTexts(20_000), { name: 'one paragraph of marks', text: '*~`'.repeat(39_000) }];
    for (const { name, text } of texts) {
      let state = NOTHING_SETTLED;
      for (let steps = 0; steps < 20 && !isParsed(state, text); steps++) {
        inlineTokens.mockClear();
        state = parseFurther(state, text, { streaming: false, goesOn: () => false });
        const work = inlineTokens.mock.calls.reduce((sum, [src]) => sum + inlineWork(src), 0);
        expect(work, name).toBeLessThan(MOST_WORK);
      }
    }
    inlineTokens.mockRestore();
  });

  it('that is code full of marks stays one block behind a paragraph, whatever stands behind it', () => {
    const code = `\`\`\`ts\n${'a[b] = &c | d; // *e* #f <g> @h\n'.repeat(600)}\`\`\`\n`;
    const blocks = parse(`Here *it* is:\n\n${code}\n${'*~`'.repeat(2_000)}`);
    expect(blocks.filter(({ type }) => type === 'code').map(({ raw }) => raw.trim())).toEqual([code.trim()]);
  });

  it('is parsed no further than its pieces can be laid out', () => {
    const state = parseFurther(NOTHING_SETTLED, 'a\n\n'.repeat(20_000), { streaming: false });
    expect(state.pieces).toBeLessThan(10_000);
    expect(state.shownLength).toBeLessThan(30_000);
  });

  it('that is a table of thousands of rows is parsed as far as it is shown, and what follows it as well', () => {
    const rows = Array.from({ length: 5_000 }, (_, at) => `| row ${at} | ${at} |\n`).join('');
    const blocks = parse(`# Rows\n\n| a | b |\n|---|---|\n${rows}\nThe *end*.`);
    const table = blocks.find(({ type }) => type === 'table');
    expect(table).toMatchObject({ rowCount: 5_000 });
    expect((table as { rows: unknown[] }).rows.length).toBeLessThan(1_000);
    expect(blocks.filter(({ type }) => type === 'table')).toHaveLength(1);
    expect(blocks.at(-1)).toMatchObject({ type: 'paragraph', text: 'The *end*.' });
  });
});

describe('what the server parses into a page', () => {
  it('is short texts, the newest first, until they come to too much together', () => {
    const texts = Array.from({ length: 200 }, (_, at) => `${at}: ${'words of an answer. '.repeat(100)}`);
    const parsed = textsParsedAtOnce(['x'.repeat(WINDOW + 1), ...texts]);
    expect(parsed.has('x'.repeat(WINDOW + 1))).toBe(false);
    expect(parsed.has(texts[0] as string)).toBe(true);
    expect(parsed.has(texts.at(-1) as string)).toBe(false);
    expect(parsed.size).toBeGreaterThan(20);
  });

  it('is chosen by what a parser has to look for', () => {
    expect(markdownWork('*`~'.repeat(1_000))).toBeGreaterThan(100 * markdownWork('words '.repeat(500)));
  });
});
