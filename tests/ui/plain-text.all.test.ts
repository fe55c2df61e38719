import { it } from 'vitest';
import { toPlainText } from '@/components/ui/plain-text';
import { cpuMs, expectWithin } from '../support/timing';

it.each([`&${'amp;'.repeat(60)}`, '*a '.repeat(80), '*a*'.repeat(80), '[a '.repeat(40) + 'b]()'.repeat(20)])(
  'toPlainText takes less than a millisecond over nested marks: %s',
  (nested) => {
    const text = nested.slice(0, 240);
    const ms = cpuMs(() => Array.from({ length: 100 }, () => toPlainText(text)));
    expectWithin(ms, 100);
  },
);
