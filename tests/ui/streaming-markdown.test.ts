import fc from 'fast-check';
import type { Token } from 'marked';
import { describe, expect, it } from 'vitest';
import { NOTHING_PARSED, type Parsed, parseBlocks, unparsedPart, withPart } from '@/components/ui/markdown/parse';

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

const grow = (before: Parsed, text: string) =>
  withPart(before, text, parseBlocks(unparsedPart(before, text)) ?? [], true);
const shape = (tokens: readonly Token[] | null) =>
  tokens?.filter((token) => token.type !== 'space').map(({ type, raw }) => [type, raw.trim()]);

describe('streaming Markdown', () => {
  it('ends with the blocks of the whole text, however it was cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...BLOCKS), { minLength: 1, maxLength: 14 }),
        fc.array(fc.nat({ max: 400 }), { maxLength: 12 }),
        (blocks, cuts) => {
          // An empty line closes the last block, so that no mark is open at the end.
          const text = `${blocks.join('')}\n\n`;
          let state = NOTHING_PARSED;
          for (const cut of [...cuts].sort((a, b) => a - b)) state = grow(state, text.slice(0, cut));
          expect(shape(grow(state, text).blocks)).toEqual(shape(parseBlocks(text)));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('parses only the end of a long text again', () => {
    const text = BLOCKS.slice(0, 9).join('').repeat(20);
    const settled = grow(NOTHING_PARSED, text);
    expect(settled.ends[settled.settled - 1]).toBeGreaterThan(text.length * 0.9);
    const next = grow(settled, `${text}one more word`);
    expect(next.blocks[0]).toBe(settled.blocks[0]);
  });

  it('closes open emphasis and code', () => {
    const { blocks } = grow(NOTHING_PARSED, 'done\n\nthis is **bold');
    expect(blocks.at(-1)).toMatchObject({
      type: 'paragraph',
      tokens: [{ type: 'text' }, { type: 'strong', text: 'bold' }],
    });
  });

  it('adds no block for a mark that stays open', () => {
    const { blocks } = grow(NOTHING_PARSED, 'a *lone star\n\n');
    expect(shape(blocks)).toEqual([['paragraph', 'a *lone star']]);
  });

  it('starts again when the text is replaced', () => {
    const settled = grow(NOTHING_PARSED, 'a\n\nb\n\nc\n\nd\n\ne\n\nf');
    expect(shape(grow(settled, 'other').blocks)).toEqual([['paragraph', 'other']]);
  });
});
