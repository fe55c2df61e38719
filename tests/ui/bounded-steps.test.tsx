import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { FIRST_WEIGHT, itemWeight } from '@/components/transcript/row-weight';
import { Blocks } from '@/components/ui/markdown/block';
import { parseBlocks } from '@/components/ui/markdown/parse';
import { endOfFirstProse, proseText } from '@/components/ui/prose';
import { rowsBefore, STEP_WEIGHT } from '@/components/ui/row-window';
import { hostileTexts } from '../support/hostile-texts';
import { aMessage, aRequest } from './rows';

/** Elements that a browser creates, lays out and paints in 40 ms. */
const MOST_ELEMENTS = 1_000;

const html = (tokens: Parameters<typeof Blocks>[0]['tokens']) =>
  renderToStaticMarkup(<Blocks tokens={tokens} streaming={false} depth={0} />);
const elements = (markup: string) => markup.match(/<\w/g)?.length ?? 0;

describe('a large block', () => {
  it('is split into bounded blocks that concatenate to the text', () => {
    const list = Array.from({ length: 900 }, (_, index) => `${index + 1}. *item* ${index + 1}\n`).join('');
    const blocks = parseBlocks(list) ?? [];
    const raw = blocks.map((block) => block.raw).join('');
    expect(raw.trim()).toBe(list.trim());
    const markup = html(blocks);
    expect(markup.match(/<li /g)).toHaveLength(900);
    const lists = blocks.filter(({ type }) => type === 'list');
    expect(lists.every((one) => elements(html([one])) < MOST_ELEMENTS)).toBe(true);
    const starts = [...markup.matchAll(/<ol start="(\d+)"/g)].map(([, start]) => Number(start));
    expect(starts).toEqual(lists.slice(1).map((one) => Number.parseInt(one.raw, 10)));
  });

  it.each([
    ['a quote', '> a line of *words*\n'],
    ['a paragraph', 'some *words* and `code`\n'],
  ])('keeps every line of %s', (_, line) => {
    const blocks = parseBlocks(line.repeat(1_000)) ?? [];
    expect(blocks.length).toBeGreaterThan(1);
    expect(
      blocks
        .map(({ raw }) => raw)
        .join('')
        .trim(),
    ).toBe(line.repeat(1_000).trim());
    expect(html(blocks).match(/<em>/g)).toHaveLength(1_000);
  });

  it('shows as many rows of a table as its cells allow', () => {
    const row = `|${'*a* **b** |'.repeat(20)}\n`;
    const markup = html(parseBlocks(`${row}|${'-|'.repeat(20)}\n${row.repeat(400)}`) ?? []);
    expect(elements(markup)).toBeLessThan(2 * MOST_ELEMENTS);
    expect(markup).toContain('Showing the beginning of 400 rows');
  });
});

describe('the first part of a text', () => {
  it('stays close to its length, however many labels stand for hidden characters', () => {
    for (const { name, text } of hostileTexts(100_000)) {
      const end = endOfFirstProse(text, 120_000);
      const shown = proseText(text.slice(0, end));
      expect(shown.length - end, name).toBeLessThan(10_000);
      if (end < text.length) expect(shown.match(/⟨/g)?.length, name).toBe(1_000);
    }
  });
});

describe('rows added to the page together', () => {
  it('are the last ones, up to one step, and at least one', () => {
    const great = Array.from({ length: 50 }, (_, index) => aMessage({ id: `m${index}`, text: 'a\n\n'.repeat(30_000) }));
    const weightOf = (at: number) => itemWeight(great[at] as (typeof great)[number]);
    const from = rowsBefore(50, 1_500, weightOf);
    expect(from).toBeGreaterThan(45);
    expect(from).toBeLessThan(50);
    expect(rowsBefore(50, 1, weightOf)).toBe(49);
    expect(rowsBefore(0, 1, weightOf)).toBe(0);
  });

  it('include every row of a turn of usual size', () => {
    const usual = Array.from({ length: 12 }, (_, index) => aMessage({ id: `m${index}`, text: 'words '.repeat(100) }));
    expect(rowsBefore(12, 1_500, (at) => itemWeight(usual[at] as (typeof usual)[number]))).toBe(0);
  });

  it('contain one request per step if inputs have thousands of nested values', () => {
    const many = Object.fromEntries(Array.from({ length: 19_000 }, (_, index) => [`k${index}`, index]));
    for (const input of [many, { command: 'ls', options: many }, [Object.values(many)], { a: [many] }]) {
      const requests = Array.from({ length: 18 }, (_, index) => aRequest({ id: `q${index}`, input }));
      const weightOf = (at: number) => itemWeight(requests[at] as (typeof requests)[number]);
      expect(rowsBefore(18, FIRST_WEIGHT, weightOf)).toBe(17);
      expect(rowsBefore(17, STEP_WEIGHT, weightOf)).toBe(16);
    }
    const usual = Array.from({ length: 8 }, (_, index) => aRequest({ id: `q${index}`, input: { command: 'ls' } }));
    expect(rowsBefore(8, FIRST_WEIGHT, (at) => itemWeight(usual[at] as (typeof usual)[number]))).toBe(0);
  });
});
