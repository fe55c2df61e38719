import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { MessageText } from '@/components/logs/message-text';
import { LongText } from '@/components/ui/long-text';
import { Markdown } from '@/components/ui/markdown/markdown';
import { VerbatimText } from '@/components/ui/verbatim-text';
import { renderedText } from '../support/rendered-text';

/** How many signs of a script a browser shapes together without a pause. */
const MOST_TOGETHER = 130;
const SIZE = 4_000;

const RUNS: Record<string, string> = {
  'Arabic letters': 'ب',
  'lines that join letters': '\u0640',
  Thai: 'กข',
  'Thai between spaces that join': `${'กข'.repeat(40)}\u00a0`,
  Khmer: 'កខិ',
  'N’Ko': '\u07ca\u07cb',
  'letters beyond the first plane': '\u{1e900}\u{1e922}',
  'letters with marks': 'ب\u064b\u064f',
};

/** Every place of the page that shows what an agent wrote at length. */
const PLACES: Record<string, (text: string) => string> = {
  'an agent’s message': (text) => renderToStaticMarkup(<Markdown text={text} />),
  'a long text': (text) => renderToStaticMarkup(<LongText text={text} most={SIZE} />),
  'a tool’s input': (text) => renderToStaticMarkup(<VerbatimText text={text} />),
  'a line of a log': (text) => renderToStaticMarkup(<MessageText message={text} hits={[]} isUnfolded />),
  'a line of a log, searched': (text) =>
    renderToStaticMarkup(
      <MessageText
        message={text}
        hits={[
          [2, 4],
          [8, 10],
        ]}
        isUnfolded
      />,
    ),
};

describe.each(Object.entries(PLACES))('a run without a space, in %s', (_place, render) => {
  it.each(Object.entries(RUNS))('may end a line all along where it is %s, and stays what it is', (_name, unit) => {
    const text = unit.repeat(SIZE / unit.length);
    const markup = render(text);
    expect(renderedText(markup)).toBe(text);
    const together = markup.split(/<wbr ?\/?>/).map((part) => renderedText(part));
    expect(Math.max(...together.map(({ length }) => length))).toBeLessThan(MOST_TOGETHER);
    for (const part of together.slice(1)) {
      expect(part).not.toMatch(/^\p{M}/u);
      expect(part.isWellFormed()).toBe(true);
    }
  });

  it.each([
    ['Latin', 'ab'],
    ['Chinese', '漢字'],
    ['words', 'مرحبا بكم '],
    ['signs of lines', '─'],
  ])('is left as it is where a browser breaks it by itself: %s', (_name, unit) => {
    expect(render(unit.repeat(SIZE / unit.length))).not.toContain('<wbr');
  });
});

it('marks without end are taken apart, for they hold up a page as well', () => {
  const markup = renderToStaticMarkup(<LongText text={`ب${'\u064b'.repeat(3_000)}`} most={SIZE} />);
  expect(markup.split('<wbr').length).toBeGreaterThan(20);
});
