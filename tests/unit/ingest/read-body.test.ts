import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { gunzip, gunzipStream } from '@/lib/server/ingest/read-body';

/** Both ways to decompress: synchronously, and streamed where there is no Node. */
const MIB = 1024 * 1024;
const text = '{"records":[]}';
const packed = gzipSync(text);
const noise = randomBytes(96 * 1024).toString('hex');
const large = gzipSync(noise);
const bomb = new Uint8Array(gzipSync(new Uint8Array(64 * MIB)));
const join = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
const changed = (at: number) => packed.map((byte, index) => (index === packed.length + at ? byte ^ 1 : byte));

describe.each([
  ['synchronous', gunzip],
  ['streamed', gunzipStream],
])('a compressed body, %s', (_how, way) => {
  const textOf = async (bytes: Uint8Array<ArrayBuffer>) => {
    const outcome = await way(bytes, MIB);
    return outcome.kind === 'decompressed' ? new TextDecoder().decode(outcome.bytes) : outcome.kind;
  };

  test.each([
    ['is complete', join(packed), text],
    ['of two members is complete', join(packed, packed), text + text],
    ['padded with zeros is complete', join(packed, new Uint8Array(3)), text],
    [
      'of two members, padded with more zeros than it has bytes',
      join(packed, packed, new Uint8Array(999)),
      text + text,
    ],
    ['of zero bytes is complete', join(gzipSync('')), ''],
    ['so large that a thread decompresses it is complete', join(large, packed), noise + text],
    [
      'so large that a thread decompresses it, with trailing text, is damaged',
      join(large, Buffer.from('x')),
      'damaged',
    ],
    [
      'so large that a thread decompresses it, truncated in its data, is damaged',
      join(large.subarray(0, -12)),
      'damaged',
    ],
    ['truncated in its data is damaged', join(packed.subarray(0, -12)), 'damaged'],
    ['truncated in its trailer is damaged', join(packed.subarray(0, -3)), 'damaged'],
    ['with another checksum is damaged', join(changed(-6)), 'damaged'],
    ['with another length is damaged', join(changed(-1)), 'damaged'],
    ['with trailing text is damaged', join(packed, Buffer.from('x')), 'damaged'],
    ['with the start of a second member is damaged', join(packed, packed.subarray(0, 5)), 'damaged'],
    ['with a second member truncated in its data is damaged', join(packed, packed.subarray(0, -12)), 'damaged'],
    ['with a second member truncated in its trailer is damaged', join(packed, packed.subarray(0, -3)), 'damaged'],
    ['that is not gzip is damaged', join(Buffer.from(text)), 'damaged'],
    ['that is empty is damaged', new Uint8Array(0), 'damaged'],
  ])('%s', async (_what, bytes, expected) => {
    expect(await textOf(bytes)).toBe(expected);
  });

  test.each([
    ['the limit', MIB, 'decompressed'],
    ['one byte more than the limit', MIB + 1, 'too-large'],
  ])('that decompresses to %s', async (_what, size, kind) => {
    expect((await way(join(gzipSync(new Uint8Array(size))), MIB)).kind).toBe(kind);
  });

  test('that decompresses to far more than the limit uses no more memory than the limit', async () => {
    const before = process.memoryUsage().arrayBuffers;
    expect((await way(bomb, MIB)).kind).toBe('too-large');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * MIB);
  });
});

test('a large compressed body is decompressed on a thread', async () => {
  let turns = 0;
  setImmediate(() => {
    turns += 1;
  });
  expect((await gunzip(join(large), MIB)).kind).toBe('decompressed');
  expect(turns).toBe(1);
});

/** Node's own stream ignores what follows zeros. Where there is no Node, streams refuse it. */
test.each([
  ['text', Buffer.from('x')],
  ['another member', packed],
  ['the start of one', packed.subarray(0, 5)],
])('a compressed body with zeros and then %s is damaged, not read in part', async (_what, more) => {
  for (const body of [packed, large]) {
    expect((await gunzip(join(body, new Uint8Array(3), more), MIB)).kind).toBe('damaged');
  }
});

test('synchronous decompression completes without yielding', async () => {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 0);
  expect((await gunzip(join(gzipSync(new Uint8Array(8 * MIB))), 8 * MIB)).kind).toBe('decompressed');
  clearInterval(timer);
  expect(turns).toBe(0);
});
