import { AppError } from '@interlude/protocol/errors';
import { MAX_RECORD_VALUES, MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Yielder } from '@/db/yield-to-loop';
import { parseBatch } from '@/lib/server/ingest/parse-batch';
import { parseJson } from '@/lib/server/ingest/parse-request';
import { alwaysYield } from '../../support/event-loop';

afterEach(() => {
  vi.restoreAllMocks();
});

const encoder = new TextEncoder();
const parse = (text: string) => parseBatch(encoder.encode(text), new Yielder());

/** The parsed body, or that it is refused. */
const whole = (text: string) => {
  try {
    return JSON.parse(text);
  } catch {
    return 'refused';
  }
};
const inPieces = (text: string) =>
  parse(text).then(
    ({ value }) => value,
    (error) => (error instanceof AppError && error.code === 'malformed' ? 'refused' : error),
  );

describe('a body parsed in pieces', () => {
  test('gives the same records as JSON.parse', async () => {
    const body = fc.record({ producer: fc.jsonValue(), records: fc.array(fc.jsonValue()), more: fc.jsonValue() });
    await fc.assert(
      fc.asyncProperty(body, fc.integer({ min: 0, max: 2 }), async (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(await inPieces(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test('is refused in the same cases as by JSON.parse', async () => {
    const body = fc.record({ records: fc.array(fc.jsonValue({ maxDepth: 2 }), { minLength: 1, maxLength: 4 }) });
    const spoiled = fc.tuple(body, fc.nat(), fc.constantFrom(...'[]{},:"0 \\\ufeff')).map(([value, at, letter]) => {
      const text = JSON.stringify(value);
      const index = at % (text.length + 1);
      return text.slice(0, index) + letter + text.slice(index + (at % 2));
    });
    await fc.assert(
      fc.asyncProperty(spoiled, async (text) => {
        // a body may begin with a byte order mark
        expect(await inPieces(text)).toEqual(whole(text.replace(/^\ufeff/, '')));
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    '{"records":[]}',
    '{"records":[ ]}',
    '{"records":[,]}',
    '{"records":[1,]}',
    '{"records":[1],"records":[2,3]}',
    '{"records":[[1],{"records":[2]}]}',
    '{"more":["records",[1]]}',
    '["records",[1]]',
    '{"\\u0072ecords":[1]}',
    '{"records":[{"a":1],"b":2}]}',
    '{"records":[1}',
    '{"records":[1',
    '[]',
    'null',
    '12 34',
    '',
  ])('%s is parsed like by JSON.parse', async (text) => {
    expect(await inPieces(text)).toEqual(whole(text));
  });

  test('is complete however many chunks it arrives in', async () => {
    const records = Array.from({ length: 5_000 }, (_, seq) => ({ seq, text: 'é"\\'.repeat(50), list: [[seq], {}] }));
    const { value, tooWide } = await parse(JSON.stringify({ records, more: [1] }));
    expect(value).toEqual({ records, more: [1] });
    expect(tooWide.size).toBe(0);
  });

  test('keeps values over the limit of one record as text, and all fields beside them', async () => {
    const wide = { seq: 2, event: { list: Array.from({ length: MAX_RECORD_VALUES }, () => 1) }, more: '[{' };
    const { value, tooWide } = await parse(JSON.stringify({ records: [{ seq: 1 }, wide, { seq: 3 }] }));
    const { records } = value as { records: unknown[] };
    expect(records).toEqual([{ seq: 1 }, { ...wide, event: JSON.stringify(wide.event) }, { seq: 3 }]);
    expect([...tooWide]).toEqual([records[1]]);
  });

  test('yields within a record as large as a request, while scanning and while its lists become text', async () => {
    const body = encoder.encode(`{"records":[{"seq":1,"event":[${'1,'.repeat(MAX_REQUEST_BYTES / 2 - 50)}1]}]}`);
    const turns = alwaysYield();
    await parseBatch(body, new Yielder());
    expect(turns()).toBeGreaterThanOrEqual((2 * body.length) / (64 * 1024));
  });

  test('detects a lone surrogate in any of its parts', async () => {
    for (const text of ['{"records":["\\ud83d"]}', '{"records":[1],"more":"\\ud83d"}'])
      expect((await parse(text)).hasHalves, text).toBe(true);
    expect((await parse('{"records":["a"],"more":"b"}')).hasHalves).toBe(false);
  });

  test('is refused above the limits of records and of values beside them', async () => {
    const many = (count: number) => `[${'1,'.repeat(count)}1]`;
    expect(await inPieces(`{"records":${many(10_000)}}`)).toBe('refused');
    expect(await inPieces(`{"records":[1],"more":${many(MAX_RECORD_VALUES)}}`)).toBe('refused');
    expect(await inPieces(`{"records":[{${'"a":1,'.repeat(MAX_RECORD_VALUES + 1)}"a":1}]}`)).toBe('refused');
  });
});

test('no other body may hold more values than a record', () => {
  const wide = `[${'1,'.repeat(MAX_RECORD_VALUES + 1)}1]`;
  expect(() => parseJson(encoder.encode(wide))).toThrow(`at most ${MAX_RECORD_VALUES} values`);
});
