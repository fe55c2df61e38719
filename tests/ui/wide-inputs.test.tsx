import type { RequestItem } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { renderRequest } from '@/app/(console)/render-request';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { inputParts } from '@/components/requests/input-parts';
import { displayable, questionsOf } from '@/components/requests/question-answer';
import { FIRST_WEIGHT, itemWeight } from '@/components/transcript/row-weight';
import { Name } from '@/components/ui/name';
import { rowsBefore, STEP_WEIGHT } from '@/components/ui/row-window';
import { FIRST_PAGE, firstPages, verbatimPage } from '@/components/ui/verbatim-text';
import { hostileInputs, zeroWidthCharacters } from '../support/hostile-texts';
import { aRequest } from './rows';

/** Limits of one card: a browser lays out that many of the slowest elements in some hundred milliseconds. */
const MOST_ELEMENTS = 2_500;
const MOST_CHARACTERS = 60_000;

const elements = (markup: string) => markup.match(/<\w/g)?.length ?? 0;
const cards = (requests: readonly RequestItem[]) =>
  renderToStaticMarkup(
    <ActionsProvider store={new ActionStore('s', () => {})}>
      {requests.map((item) => (
        <div key={item.id}>{renderRequest(item)}</div>
      ))}
    </ActionsProvider>,
  );
const requestOf = ({ input, kind }: { input: unknown; kind: RequestItem['requestKind'] }, id = 'q') =>
  aRequest({ id, input, requestKind: kind });

describe('a request card', () => {
  it.each(hostileInputs())('has bounded elements and characters: $name', (hostile) => {
    const markup = cards([requestOf(hostile)]);
    expect(elements(markup)).toBeLessThan(MOST_ELEMENTS);
    expect(markup.replace(/<[^>]*>/g, '').length).toBeLessThan(MOST_CHARACTERS);
  });

  it.each(hostileInputs())('shares a bounded first render with others: $name', (hostile) => {
    const requests = Array.from({ length: 40 }, (_, index) => requestOf(hostile, `q${index}`));
    const weightOf = (at: number) => itemWeight(requests[at] as RequestItem);
    for (const most of [FIRST_WEIGHT, STEP_WEIGHT]) {
      const together = requests.slice(rowsBefore(40, most, weightOf));
      expect(elements(cards(together))).toBeLessThan(together.length === 1 ? MOST_ELEMENTS : 2 * most);
    }
  });

  it('shows all names of an input: in a list, or in one text if they are long', () => {
    const name = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 30 }),
      fc.integer({ min: 0, max: 700 }).map((count) => zeroWidthCharacters(count)),
      fc.integer({ min: 0, max: 5_000 }).map((count) => 'k'.repeat(count)),
    );
    fc.assert(
      fc.property(fc.dictionary(name, fc.integer(), { minKeys: 1, maxKeys: 8 }), (args) => {
        const parts = inputParts({ args, argsText: '' });
        const [first] = parts;
        if (first?.kind === 'whole') expect(JSON.parse(first.text)).toEqual(args);
        else expect(parts.map((part) => part.name)).toEqual(Object.keys(args));
        const listed = parts.filter(({ kind }) => kind === 'field').map((part) => part.name);
        expect(listed.join('').length).toBeLessThanOrEqual(4_000);
      }),
    );
  });

  it('is not mostly spaces, however deep its values are', () => {
    const list = JSON.stringify(Array.from({ length: 400_000 }, () => 1));
    const args = { deep: JSON.parse(`${'['.repeat(60)}${list}${']'.repeat(60)}`) };
    const [part] = inputParts({ args, argsText: '' });
    expect(part?.text.length).toBeLessThan(2 * list.length);
    expect(JSON.parse(part?.text ?? '')).toEqual(args.deep);
  });
});

describe('firstPages', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 50 }),
    fc.integer({ min: 0, max: 3_000 }).map((count) => zeroWidthCharacters(count)),
    fc.integer({ min: 0, max: 20_000 }).map((count) => 'x'.repeat(count)),
    fc.integer({ min: 0, max: 500 }).map((count) => 'line\n'.repeat(count)),
  );

  it('shows the beginning of each part, bounded in total', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 100 }), (texts) => {
        const pages = firstPages(texts);
        for (const [index, { pieces, end }] of pages.entries()) {
          const whole = texts[index] ?? '';
          expect(pieces.map((piece) => piece.text).join('')).toBe(whole.slice(0, end));
          if (whole !== '') expect(end).toBeGreaterThan(0);
          // The next page starts at its end.
          if (end < whole.length) expect(verbatimPage(whole, end, FIRST_PAGE).end).toBeGreaterThan(end);
        }
        const sum = (of: (page: (typeof pages)[number]) => number) => pages.reduce((all, page) => all + of(page), 0);
        expect(sum(({ pieces }) => pieces.length)).toBeLessThanOrEqual(1_000);
        expect(sum(({ end }) => end)).toBeLessThanOrEqual(18_000);
      }),
      { numRuns: 200 },
    );
  });

  it('shows each part as if alone if there is room', () => {
    const texts = ['ls', 'a\n'.repeat(99), 'b'.repeat(9_000), zeroWidthCharacters(700)];
    expect(firstPages(texts)).toEqual(texts.map((one) => verbatimPage(one, 0, FIRST_PAGE)));
  });
});

describe('questions', () => {
  it('are shown up to a total length', () => {
    const ask = (count: number, question: string) =>
      displayable(
        questionsOf({
          title: 't',
          input: {
            questions: Array.from({ length: count }, (_, index) => `${question}${index}`).map((one) => ({
              question: one,
            })),
          },
        }),
      ).length;
    expect(ask(20, 'x'.repeat(900))).toBe(20);
    expect(ask(20, 'x'.repeat(1_990))).toBe(10);
    expect(ask(20, zeroWidthCharacters(40))).toBe(20);
    expect(ask(20, zeroWidthCharacters(99))).toBe(10);
    expect(ask(2, 'x'.repeat(30_000))).toBe(0);
  });

  it('that are too long show how the first starts, and can’t be answered', () => {
    const input = { questions: [{ question: `Shall I? ${'x'.repeat(30_000)}` }] };
    const markup = cards([aRequest({ requestKind: 'question', title: 't', input })]);
    expect(markup).toContain('Shall I?');
    expect(markup).toContain('too long to show in full');
    expect(markup).toMatch(/<button type="submit"[^>]* disabled=""/);
  });
});

describe('a name with many labels', () => {
  it('is marked as truncated', () => {
    const markup = renderToStaticMarkup(<Name text={`a${zeroWidthCharacters(390)}b`} />);
    expect(elements(markup)).toBeLessThanOrEqual(100);
    expect(markup).toMatch(/…$/);
    expect(renderToStaticMarkup(<Name text={`a${zeroWidthCharacters(10)}b`} />)).toMatch(/b$/);
  });
});
