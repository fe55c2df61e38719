import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { Blocks } from '@/components/ui/markdown/block';
import { NOTHING_PARSED, nextStep, parseBlocks, withPart } from '@/components/ui/markdown/parse';
import { proseText } from '@/components/ui/prose';
import { hostileTexts } from '../support/hostile-texts';

/** Elements that a browser creates, lays out and paints in 40 ms. */
const MOST_ELEMENTS = 1_000;
/** Characters of one block that a browser breaks into lines in 40 ms. */
const MOST_CHARACTERS = 6_000;

it.each(hostileTexts(100_000))('adds bounded elements and characters per step: $name', ({ text }) => {
  const clean = proseText(text);
  const parsed = withPart(NOTHING_PARSED, clean, parseBlocks(clean) ?? [], false);
  for (let from = 0; from < parsed.blocks.length; ) {
    const to = nextStep(parsed, from);
    const added = parsed.blocks.slice(from, to);
    const markup = renderToStaticMarkup(<Blocks tokens={added} streaming={false} depth={0} />);
    expect(markup.match(/<\w/g)?.length ?? 0).toBeLessThan(MOST_ELEMENTS);
    for (const { type, raw } of added) {
      if (type !== 'table' && type !== 'code') expect(raw.length).toBeLessThanOrEqual(MOST_CHARACTERS);
    }
    from = to;
  }
});
