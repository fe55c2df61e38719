import { MAX_ARGS_VALUES, MAX_JSON_DEPTH } from '@interlude/protocol/limits';
import { parseArgs } from '@interlude/protocol/projections/item-draft';
import { describe, expect, it } from 'vitest';

const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const wide = (values: number) => `[${'1,'.repeat(values - 1)}1]`;

describe('the arguments of a call', () => {
  it.each([
    ['an object', '{"command":"ls"}', { command: 'ls' }],
    ['a word', 'null ', null],
    ['an escape of half a character, in a key, too', '{"\\ud83d":"cut \\ud83d"}', { '\ufffd': 'cut \ufffd' }],
    [
      'brackets and commas in a text',
      JSON.stringify('[,"\\\\'.repeat(MAX_ARGS_VALUES)),
      '[,"\\\\'.repeat(MAX_ARGS_VALUES),
    ],
    ['as deep as a record may be', deep(MAX_JSON_DEPTH), JSON.parse(deep(MAX_JSON_DEPTH))],
    ['of as many values as are read', wide(MAX_ARGS_VALUES), JSON.parse(wide(MAX_ARGS_VALUES))],
  ])('are parsed: %s', (_what, text, args) => {
    expect(parseArgs(text)).toEqual(args);
  });

  it.each([
    ['pieces of JSON', '{"command":"ls'],
    ['what only ends as JSON does', '{"command":"ls}'],
    ['deeper than a record may be', deep(MAX_JSON_DEPTH + 1)],
    ['so deep that nobody could write them', deep(500_000)],
    ['of more values than are read', wide(MAX_ARGS_VALUES + 1)],
    ['of more objects than are read', `[${'{},'.repeat(MAX_ARGS_VALUES)}1]`],
  ])('stay text: %s', (_what, text) => {
    expect(parseArgs(text)).toBeNull();
  });
});
