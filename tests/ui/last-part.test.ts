import { describe, expect, it } from 'vitest';
import { lastPart } from '@/components/ui/truncate';
import { countLines } from '@/components/ui/verbatim-page';

describe('lastPart', () => {
  it.each([
    ['a\nb\nc', 3, 'a\nb\nc', false],
    ['a\nb\nc', 2, 'b\nc', true],
    ['a\nb\nc', 1, 'c', true],
    ['\n\n', 2, '\n', true],
    ['', 2, '', false],
    ['\na', 2, '\na', false],
  ])('%j limited to %i lines is %j', (text, lines, shown, isCut) => {
    expect(lastPart(text, { lines, characters: 100 })).toEqual({ text: shown, isCut });
  });

  it('limits characters, too, and splits no surrogate pair', () => {
    expect(lastPart('abcdef', { lines: 9, characters: 3 })).toEqual({ text: 'def', isCut: true });
    expect(lastPart('ab😀f', { lines: 9, characters: 2 })).toEqual({ text: 'f', isCut: true });
  });

  it('returns as many lines as allowed', () => {
    expect(countLines('')).toBe(1);
    expect(countLines('a\nb\n')).toBe(3);
  });
});
