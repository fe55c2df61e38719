import fc from 'fast-check';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { MessageText } from '@/components/logs/message-text';
import { longestRuns } from '@/components/ui/line-breaks';
import { Markdown } from '@/components/ui/markdown/markdown';
import { LongText } from '@/components/ui/prose';
import { VerbatimText } from '@/components/ui/verbatim-text';
import { renderedText } from '../support/rendered-text';

/** Characters that a browser shapes together without a pause. */
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

/** Every component that shows long text of an agent. */
const PLACES: Record<string, (text: string) => string> = {
  'an agent’s message': (text) => renderToStaticMarkup(<Markdown text={text} />),
  'a long text': (text) => renderToStaticMarkup(<LongText text={text} max={SIZE} />),
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
  it.each(Object.entries(RUNS))('gets break opportunities and keeps its text: %s', (_name, unit) => {
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
  ])('gets no break opportunities when it needs none: %s', (_name, unit) => {
    expect(render(unit.repeat(SIZE / unit.length))).not.toContain('<wbr');
  });
});

it('a long sequence of marks gets break opportunities', () => {
  const markup = renderToStaticMarkup(<LongText text={`ب${'\u064b'.repeat(3_000)}`} max={SIZE} />);
  expect(markup.split('<wbr').length).toBeGreaterThan(20);
});

it('longestRuns finds every 500 characters of a run', () => {
  const run = fc.tuple(fc.constantFrom('a', 'ب', '漢', '\u00a0', 'ab'), fc.integer({ min: 0, max: 1_200 }));
  const between = fc.constantFrom(' ', '\t', '\n', '  ', ' \n');
  fc.assert(
    fc.property(fc.array(fc.tuple(run, between), { maxLength: 12 }), (parts) => {
      const text = parts.map(([[sign, count], space]) => sign.repeat(count) + space).join('');
      const expected = text.split(/[ \t\n]/).flatMap((word) => word.match(/.{500}/gs) ?? []);
      expect(longestRuns(text)).toEqual(expected);
      expect(longestRuns(text.replace(/[ \t\n]+$/, ''))).toEqual(expected);
    }),
  );
});
