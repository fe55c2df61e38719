import { ackSchema, sendMessageSchema } from '@interlude/protocol/commands';
import { eventRecordSchema } from '@interlude/protocol/envelope';
import { idSchema } from '@interlude/protocol/field-schemas';
import { mayBeIllFormed, parseWellFormed, stringifyWellFormed, wellFormed } from '@interlude/protocol/json';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { parseTopic } from '@interlude/protocol/sse';
import { truncateText } from '@interlude/protocol/text';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

/** Units of UTF-16 as they come, so that halves of pairs are common. */
const units = fc
  .array(fc.constantFrom('a', '\\', '"', '\0', 'ü', '\ud83d', '\ude00', '\ud83d\ude00', '\ufffd', '__proto__'))
  .map((parts) => parts.join(''));
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    units,
    fc.constantFrom(null, 1, -0, true),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(units, tie('tree'), { maxKeys: 4 }),
  ),
}));

/** Every string of a JSON value, keys too. */
function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => [key, ...stringsOf(one)]);
}

describe('wellFormed', () => {
  it('repairs all strings and keys and keeps their number', () => {
    fc.assert(
      fc.property(tree, (value) => {
        const json = JSON.stringify(value);
        for (const after of [parseWellFormed(json), JSON.parse(stringifyWellFormed(value))]) {
          const strings = stringsOf(after);
          expect(strings.every((text) => text.isWellFormed())).toBe(true);
          expect(strings).toHaveLength(stringsOf(JSON.parse(json)).length);
        }
      }),
    );
  });

  it('returns an intact value unchanged', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(wellFormed(value)).toBe(value);
      }),
    );
    expect(mayBeIllFormed(JSON.stringify({ text: 'all of 😀, of ü and of \\ud' }))).toBe(false);
    expect(mayBeIllFormed('{"text":"\\ud83D"}')).toBe(true);
  });

  it('keeps the values of keys that become equal', () => {
    const broken = JSON.parse('{"\\ud800":1,"\\ud801":2,"\\ufffd2":3,"\\udfff":4,"__proto__":5}');
    expect(Object.entries(wellFormed(broken))).toEqual([
      ['\ufffd', 1],
      ['\ufffd3', 2],
      ['\ufffd2', 3],
      ['\ufffd4', 4],
      ['__proto__', 5],
    ]);
  });
});

describe('truncateText', () => {
  it('returns the longest prefix that splits no surrogate pair', () => {
    const text = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(text, fc.nat(12), (value, length) => {
        const cut = truncateText(value, length);
        expect(value.startsWith(cut)).toBe(true);
        expect(cut.length <= length && cut.isWellFormed()).toBe(true);
        if (cut !== value) expect(cut.length).toBeGreaterThanOrEqual(length - 1);
      }),
    );
  });
});

describe('length limits', () => {
  const fits = '😀'.repeat(MAX_ID_LENGTH / 2);

  it('count UTF-16 code units for ids', () => {
    const record = (id: string) => ({
      seq: 1,
      kind: 'event',
      agentId: id,
      sessionId: 's',
      occurredAt: 1,
      event: { type: 'X' },
    });
    const readers: Record<string, (id: string) => boolean> = {
      schema: (id) => idSchema.safeParse(id).success,
      record: (id) => eventRecordSchema.safeParse(record(id)).success,
      topic: (id) => parseTopic(`session:${id}`) !== null,
      command: (id) => sendMessageSchema.safeParse({ text: 'x', clientId: id }).success,
      runner: (id) => ackSchema.safeParse({ state: 'done', runner: id, startedAt: 1 }).success,
    };
    for (const [name, reads] of Object.entries(readers)) {
      expect([name, reads(fits), reads(`${fits}a`), reads(`${fits}😀`)]).toEqual([name, true, false, false]);
    }
  });

  it('reject times that a Date can’t hold', () => {
    for (const startedAt of [1e16, 2 ** 53, 8_640_000_000_000_001, -1, 1.5]) {
      expect(ackSchema.safeParse({ state: 'done', runner: 'r', startedAt }).success).toBe(false);
    }
    expect(ackSchema.safeParse({ state: 'done', runner: 'r', startedAt: 8_640_000_000_000_000 }).success).toBe(true);
  });
});
