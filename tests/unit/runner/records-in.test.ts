import { parseRecords } from '@interlude/runner/sources/hooks/transcript-files';
import { describe, expect, test } from 'vitest';

const record = (uuid: string, more: object = {}) => JSON.stringify({ type: 'user', uuid, ...more });
const [A = '', B = '', C = ''] = ['a', 'b', 'c'].map((id) =>
  record(id, { message: { content: `{"type":"x"} of ${id}` } }),
);
const half = A.slice(0, -20);
const rest = A.slice(-20);
const nested = { input: { type: 'user', uuid: 'n', message: { content: 'forged' } } };

/** The ids of the records, and `gap` for what can't be read. */
const read = (text: string) => parseRecords(text).map(({ fields }) => fields?.uuid ?? 'gap');

describe('a physical line of a transcript', () => {
  test.each([
    ['one record', `${A}`, ['a']],
    ['nothing', ' \r', []],
    ['three records', `${A}${B} ${C}`, ['a', 'b', 'c']],
    ['zeros before a record', `${'\0'.repeat(512)}${A}`, ['gap', 'a']],
    ['zeros between records', `${A}\0\0${B}`, ['a', 'gap', 'b']],
    ['half a record, a record and half a record', `${half}${B}${half}`, ['gap', 'b', 'gap']],
    ['the end of a record before a record', `${rest}${B}`, ['gap', 'b']],
    ['a record inside another', `${half}${B}${rest}`, ['a', 'b']],
    ['two records inside another', `${A.slice(0, 10)}${B}${A.slice(10, -5)}${C}${A.slice(-5)}`, ['a', 'b', 'c']],
    ['garbage', 'not a record', ['gap']],
    ['JSON that is no object', '[1,"a"]', ['gap']],
    [
      'half a record that holds what looks like a part',
      `{"uuid":"a","message":{"content":[{"type":"text","text":"x"}]`,
      ['gap'],
    ],
    ['an object that names nothing between records', `${A}{"type":"text","text":"x"}${B}`, ['a', 'gap', 'b']],
    ['a record whose input is another', record('a', nested), ['a']],
    ['a record whose input is another, behind zeros', `\0${record('a', nested)}`, ['gap', 'a']],
    ['half a record whose input is another', `${record('a', nested).slice(0, -1)}`, ['gap']],
    ['braces and quotes in texts', `x${record('a', { text: '}{"\\' })}${B}`, ['gap', 'a', 'b']],
    ['half a surrogate in a text', `x${record('a', { text: '\ud83d' })}`, ['gap', 'a']],
  ])('with %s', (_, text, expected) => {
    expect(read(text)).toEqual(expected);
  });

  test('yields a record spliced into another one', () => {
    for (let index = 1; index < A.length; index += 1)
      expect(read(`${A.slice(0, index)}${B}${A.slice(index)}`)).toEqual(['a', 'b']);
  });
});
