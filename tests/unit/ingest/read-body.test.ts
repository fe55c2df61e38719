import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { gunzip, gunzipStream } from '@/lib/server/ingest/read-body';

/** Both ways to unpack: in one step, and streamed where there is no Node. */
const MIB = 1024 * 1024;
const text = '{"records":[]}';
const packed = gzipSync(text);
const noise = randomBytes(96 * 1024).toString('hex');
const large = gzipSync(noise);
const bomb = new Uint8Array(gzipSync(new Uint8Array(64 * MIB)));
const join = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
const changed = (at: number) => packed.map((byte, index) => (index === packed.length + at ? byte ^ 1 : byte));

describe.each([
  ['in one step', gunzip],
  ['streamed', gunzipStream],
])('a packed body, %s', (_how, way) => {
  const textOf = async (bytes: Uint8Array<ArrayBuffer>) => {
    const outcome = await way(bytes, MIB);
    return outcome.kind === 'unpacked' ? new TextDecoder().decode(outcome.bytes) : outcome.kind;
  };

  test.each([
    ['as it is', join(packed), text],
    ['of two members', join(packed, packed), text + text],
    ['padded with zeros', join(packed, new Uint8Array(3)), text],
    [
      'of two members, padded with more zeros than it has bytes',
      join(packed, packed, new Uint8Array(999)),
      text + text,
    ],
    ['of nothing', join(gzipSync('')), ''],
    ['of so much that it is unpacked on a thread', join(large, packed), noise + text],
    ['of so much, with text behind it', join(large, Buffer.from('x')), 'damaged'],
    ['of so much, cut off in its data', join(large.subarray(0, -12)), 'damaged'],
    ['cut off in its data', join(packed.subarray(0, -12)), 'damaged'],
    ['cut off in its trailer', join(packed.subarray(0, -3)), 'damaged'],
    ['with another sum', join(changed(-6)), 'damaged'],
    ['with another length', join(changed(-1)), 'damaged'],
    ['with text behind it', join(packed, Buffer.from('x')), 'damaged'],
    ['with the beginning of a second member', join(packed, packed.subarray(0, 5)), 'damaged'],
    ['with a second member cut off in its data', join(packed, packed.subarray(0, -12)), 'damaged'],
    ['with a second member cut off in its trailer', join(packed, packed.subarray(0, -3)), 'damaged'],
    ['that is no gzip', join(Buffer.from(text)), 'damaged'],
    ['that is empty', new Uint8Array(0), 'damaged'],
  ])('%s', async (_what, bytes, expected) => {
    expect(await textOf(bytes)).toBe(expected);
  });

  test.each([
    ['its limit', MIB, 'unpacked'],
    ['a byte more', MIB + 1, 'too-large'],
  ])('that unpacks to %s', async (_what, size, kind) => {
    expect((await way(join(gzipSync(new Uint8Array(size))), MIB)).kind).toBe(kind);
  });

  test('that unpacks to much more takes no more memory than the limit', async () => {
    const before = process.memoryUsage().arrayBuffers;
    expect((await way(bomb, MIB)).kind).toBe('too-large');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * MIB);
  });
});

test('a large packed body is unpacked beside the event loop: what is in it may be made to be slow', async () => {
  let turns = 0;
  setImmediate(() => {
    turns += 1;
  });
  expect((await gunzip(join(large), MIB)).kind).toBe('unpacked');
  expect(turns).toBe(1);
});

/** Node's own stream says nothing of what stands behind zeros; where there is no Node, streams refuse anything there. */
test.each([
  ['text', Buffer.from('x')],
  ['another member', packed],
  ['the beginning of one', packed.subarray(0, 5)],
])('a packed body with zeros and then %s behind it is damaged, not read in part', async (_what, more) => {
  for (const body of [packed, large]) {
    expect((await gunzip(join(body, new Uint8Array(3), more), MIB)).kind).toBe('damaged');
  }
});

test('in one step means: no turn of the event loop', async () => {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 0);
  expect((await gunzip(join(gzipSync(new Uint8Array(8 * MIB))), 8 * MIB)).kind).toBe('unpacked');
  clearInterval(timer);
  expect(turns).toBe(0);
});
