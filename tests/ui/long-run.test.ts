import fc from 'fast-check';
import { expect, it } from 'vitest';
import { longestRuns } from '@/components/ui/line-breaks';

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
