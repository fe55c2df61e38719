import { it } from 'vitest';
import { hostileTexts } from '../support/hostile-texts';
import { cpuMs, expectWithin } from '../support/timing';
import { aMessage, aTurn } from './rows';
import { transcriptMarkup } from './transcript-markup';

/** Thirty milliseconds are usual. Without bounds, it takes minutes. */
const MOST_MS = 1_000;

it('renders a transcript of hostile texts on the server in bounded time', () => {
  for (const { name, text } of hostileTexts(20_000)) {
    const short = text.slice(0, 3_900);
    const turns = Array.from({ length: 30 }, (_, index) =>
      aTurn({
        id: `r${index}`,
        position: `${index + 1}`,
        items: [
          aMessage({ id: `q${index}`, position: `${index}1`, role: 'user', text }),
          aMessage({ id: `a${index}`, position: `${index}2`, text: `${short}${index}` }),
          aMessage({ id: `b${index}`, position: `${index}3`, text }),
        ],
      }),
    );
    const took = cpuMs(() => transcriptMarkup(turns));
    expectWithin(took, MOST_MS, name);
  }
});
