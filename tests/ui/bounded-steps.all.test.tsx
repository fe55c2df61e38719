import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { Blocks } from '@/components/ui/markdown/block';
import { fillsStep, isParsed, NOTHING_SETTLED, parseFurther } from '@/components/ui/markdown/parse';
import { proseText } from '@/components/ui/prose';
import { hostileTexts } from '../support/hostile-texts';

/** A browser creates, lays out and paints as many in forty milliseconds. */
const MOST_ELEMENTS = 1_000;
/** Characters of one block that a browser breaks into lines in forty milliseconds. */
const MOST_CHARACTERS = 6_000;

it.each(hostileTexts(100_000))(
  'each step of parsing $name adds a bounded number of elements and characters',
  ({ text }) => {
    const clean = proseText(text);
    let state = NOTHING_SETTLED;
    while (!isParsed(state, clean)) {
      const before = state;
      state = parseFurther(before, clean, { streaming: false, goesOn: (now) => !fillsStep(before, now) });
      const added = state.shown.slice(before.shown.length);
      const markup = renderToStaticMarkup(<Blocks tokens={added} streaming={false} depth={0} />);
      expect(markup.match(/<\w/g)?.length ?? 0).toBeLessThan(MOST_ELEMENTS);
      for (const { type, raw } of added) {
        if (type !== 'table' && type !== 'code') expect(raw.length).toBeLessThanOrEqual(MOST_CHARACTERS);
      }
    }
  },
);
