import { expect, it } from 'vitest';
import { hostileTexts } from '../../support/hostile-texts';

it('the corpus has each text at the length that is asked for, none longer', () => {
  for (const { name, text } of hostileTexts(1_000)) {
    expect(text.length, name).toBeLessThanOrEqual(1_000);
    expect(text.length, name).toBeGreaterThan(900);
  }
});
