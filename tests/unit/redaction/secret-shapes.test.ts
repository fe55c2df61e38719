import { openEnded } from '@interlude/protocol/redaction/secret-shapes';
import { expect, test } from 'vitest';

test('openEnded matches a partial value only at the end of a text', () => {
  const open = openEnded(/(key=)([a-f]{8})(?![a-f])/g);
  expect(open.exec('key=ab')?.[2]).toBe('ab');
  expect(open.exec('key=ab ')).toBeNull();
});

test.each([/(key=)([a-f]+)/, /key=[a-f]{8}/])('openEnded throws for %s without a counted repetition', (pattern) => {
  expect(() => openEnded(pattern)).toThrow('does not end with a counted run');
});
