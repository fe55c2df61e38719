import fc from 'fast-check';
import type { Token } from 'marked';
import { describe, expect, it } from 'vitest';
import { NOTHING_SETTLED, parse, parseFurther } from '@/components/ui/markdown/parse';

const BLOCKS = [
  '# Title\n\n',
  'A paragraph with **bold**, `code` and [a link](https://example.test).\n\n',
  '- one\n- two\n\n',
  '- loose\n\n- list\n\n',
  '1. first\n   - nested\n2. second\n\n',
  '```ts\nconst a = 1;\n\nconst b = 2;\n```\n\n',
  '> quoted\n> more\n\n',
  '| a | b |\n|---|---|\n| 1 | 2 |\n\n',
  '---\n\n',
  'plain *half',
  ' done*\n\n',
  '\n\n\n',
];

const shape = (tokens: readonly Token[] | null) =>
  tokens?.filter((token) => token.type !== 'space').map(({ type, raw }) => [type, raw.trim()]);

describe('markdown that is still being written', () => {
  it('ends as the same blocks that the whole text has, however it was cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...BLOCKS), { minLength: 1, maxLength: 14 }),
        fc.array(fc.nat({ max: 400 }), { maxLength: 12 }),
        (blocks, cuts) => {
          // An empty line closes the last block, so that no mark is open at the end.
          const text = `${blocks.join('')}\n\n`;
          let state = NOTHING_SETTLED;
          for (const cut of [...cuts].sort((a, b) => a - b)) state = parseFurther(state, text.slice(0, cut));
          expect(shape(parseFurther(state, text).shown)).toEqual(shape(parse(text)));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('parses of a long text only its end again', () => {
    const text = BLOCKS.slice(0, 9).join('').repeat(20);
    const settled = parseFurther(NOTHING_SETTLED, text);
    expect(settled.text.length).toBeGreaterThan(text.length * 0.9);
    const next = parseFurther(settled, `${text}one more word`);
    expect(next.tokens[0]).toBe(settled.tokens[0]);
  });

  it('shows emphasis and code that have only begun as if they had ended', () => {
    const { shown } = parseFurther(NOTHING_SETTLED, 'done\n\nthis is **bold');
    expect(shown?.at(-1)).toMatchObject({
      type: 'paragraph',
      tokens: [{ type: 'text' }, { type: 'strong', text: 'bold' }],
    });
  });

  it('adds no block of its own for a mark that stays open', () => {
    const { shown } = parseFurther(NOTHING_SETTLED, 'a *lone star\n\n');
    expect(shape(shown)).toEqual([['paragraph', 'a *lone star']]);
  });

  it('begins anew when the text is another one', () => {
    const settled = parseFurther(NOTHING_SETTLED, 'a\n\nb\n\nc\n\nd\n\ne\n\nf');
    expect(shape(parseFurther(settled, 'other').shown)).toEqual([['paragraph', 'other']]);
  });
});
