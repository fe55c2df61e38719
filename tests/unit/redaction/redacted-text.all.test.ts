import { expect, it } from 'vitest';
import { RedactedText } from '@/lib/redaction/redacted-text';
import { cpuMs } from '../../support/cpu-time';

it('RedactedText takes time linear in a text, in however many pieces it comes', () => {
  const timeOf = (pieces: number) =>
    cpuMs(() => {
      const text = new RedactedText();
      for (let at = 0; at < pieces; at += 1) text.more(at % 8 === 0 ? 'the key is not\n' : 'some words of prose ');
    });
  timeOf(2_000);
  expect(timeOf(40_000) / timeOf(10_000)).toBeLessThan(12);
});
