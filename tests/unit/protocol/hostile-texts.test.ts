import { expect, it } from 'vitest';
import { hostileTexts } from '../../support/hostile-texts';

it('the hostile texts fit the requested length', () => {
  const size = 10_000;
  for (const { name, text } of hostileTexts(size)) {
    expect(text.length, name).toBeLessThanOrEqual(size);
    expect(text.length, name).toBeGreaterThan(size / 2);
  }
});
