import { describe, expect, it } from 'vitest';
import { ansiPieces, parseAnsi, plainText, stripAnsi } from '@/components/ui/ansi';
import { lastPart } from '@/components/ui/last-part';
import { hostileTexts } from '../support/hostile-texts';

/** Every function of the page that walks what an agent wrote, by name. */
const SCANNERS: Record<string, (text: string) => unknown> = {
  parseAnsi: (text) => parseAnsi(text),
  stripAnsi,
  ansiPieces,
  plainText,
  lastPart: (text) => lastPart(text, { lines: 16, characters: 4_000 }),
};

const SIZE = 256 * 1024;
/** A linear walk takes a few milliseconds; one by the square of the length, half a minute. */
const MOST_MS = 500;

describe('over any text an agent may write', () => {
  const texts = hostileTexts(SIZE);
  it.each(Object.keys(SCANNERS))('%s takes no more than its length is worth', (name) => {
    const scan = SCANNERS[name] as (text: string) => unknown;
    for (const { name: what, text } of texts) {
      const start = performance.now();
      scan(text);
      const took = performance.now() - start;
      expect(took, `${name} over ${what}`).toBeLessThan(MOST_MS);
    }
  });
});
