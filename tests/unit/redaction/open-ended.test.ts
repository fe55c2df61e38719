import { openEnded } from '@interlude/protocol/redaction/secret-shapes';
import { expect, test } from 'vitest';

test('finds the beginning of a value at the end of a text, and nowhere else', () => {
  const open = openEnded(/(key=)([a-f]{8})(?![a-f])/g);
  expect(open.exec('key=ab')?.[2]).toBe('ab');
  expect(open.exec('key=ab ')).toBeNull();
});

test.each([/(key=)([a-f]+)/, /key=[a-f]{8}/])('throws for %s, whose value has no count', (pattern) => {
  expect(() => openEnded(pattern)).toThrow('does not end with a counted run');
});
