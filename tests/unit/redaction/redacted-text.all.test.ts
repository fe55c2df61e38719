import { RedactedText } from '@interlude/protocol/redaction/redacted-text';
import { expect, it } from 'vitest';
import { cpuMs } from '@/tests/support/timing';

it.each(['some words of prose ', `password: "A ''' ''' `, '[["a"    "b"    '])(
  'RedactedText takes time linear in a text, in however many pieces it comes: %s',
  (unit) => {
    const timeOf = (pieces: number) =>
      cpuMs(() => {
        const text = new RedactedText();
        for (let index = 0; index < pieces; index += 1) text.more(index % 8 === 0 ? 'the key is not\n' : unit);
      });
    timeOf(1_000);
    expect(timeOf(12_000) / timeOf(3_000)).toBeLessThan(12);
  },
);
