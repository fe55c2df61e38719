import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { MAX_OUTPUT_PARTS, MAX_TASK_OUTPUT_BYTES } from '@interlude/protocol/limits';
import type { TaskOutput } from '@interlude/protocol/read-models';
import { appendOutputs, outputSize } from '@interlude/protocol/task-output';
import { utf8Length } from '@interlude/protocol/text';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

const told = (value: object): AgUiEvent => ({
  type: 'CUSTOM',
  name: CUSTOM.taskOutput,
  value: { task_id: 't', ...value },
});
const fold = (values: object[], before: TaskOutput | null = null) =>
  values.reduce<TaskOutput | null>((output, value, index) => appendOutputs(output, [[told(value), index]]), before);
const parts = (values: object[]) => fold(values)?.parts;

describe('appendOutputs', () => {
  test('continues, leaves a hole, or starts over', () => {
    expect(
      parts([
        { text: 'one\n', from: 0, to: 4 },
        { text: 'two\n', from: 4, to: 8 },
      ]),
    ).toEqual([{ from: 0, to: 8, text: 'one\ntwo\n' }]);
    expect(
      parts([
        { text: 'one\n', from: 0, to: 4 },
        { text: 'nine\n', from: 90, to: 95 },
      ]),
    ).toEqual([
      { from: 0, to: 4, text: 'one\n' },
      { from: 90, to: 95, text: 'nine\n' },
    ]);
    expect(
      parts([
        { text: 'one\n', from: 0, to: 4 },
        { text: 'new\n', from: 0, to: 4 },
      ]),
    ).toEqual([{ from: 0, to: 4, text: 'new\n' }]);
  });

  test('continues the previous range if offsets are absent', () => {
    expect(parts([{ text: 'é' }, { text: 'a' }])).toEqual([{ from: 0, to: 3, text: 'éa' }]);
  });

  test('keeps the end, redactions and errors', () => {
    const output = fold([
      { text: 'a', redacted: 2 },
      { text: 'b', redacted: 1 },
      { text: '', ended: true, error: 'It is gone.' },
    ]);
    expect(output).toMatchObject({ redacted: 3, lastAt: 1, hasEnded: true, error: 'It is gone.' });
    expect(fold([{ text: 'more' }], output)).toMatchObject({ hasEnded: false, error: null });
  });

  test.each([
    ['nothing', {}],
    ['numbers that are none', { text: 'a', from: -1, to: Number.MAX_VALUE, redacted: 0.5 }],
    ['another shape', { text: { a: 1 }, from: 'x', ended: 'yes', error: 7 }],
    ['places the wrong way round', { text: 'abc', from: 10, to: 2 }],
  ])('accepts malformed events: %s', (_what, value) => {
    const output = fold([{ text: 'first' }, value, { text: 'last' }]);
    expect(output?.parts.map(({ text }) => text).join('')).toContain('last');
    for (const { from, to } of output?.parts ?? []) expect(to).toBeGreaterThanOrEqual(from);
  });

  test('keeps the newest bytes and parts, in whole characters', () => {
    const long = '😀'.repeat(MAX_TASK_OUTPUT_BYTES / 4);
    const output = fold([{ text: `start ${long}` }, { text: 'x' }]);
    const text = output?.parts[0]?.text ?? '';
    expect(utf8Length(text)).toBeLessThanOrEqual(MAX_TASK_OUTPUT_BYTES);
    expect(utf8Length(text)).toBeGreaterThan(MAX_TASK_OUTPUT_BYTES - 4);
    expect(text.endsWith('😀x')).toBe(true);
    expect(text.isWellFormed()).toBe(true);
    expect(output === null ? 0 : outputSize(output)).toBe(6 + MAX_TASK_OUTPUT_BYTES + 1);
    const holes = Array.from({ length: 3 * MAX_OUTPUT_PARTS }, (_, index) => ({ text: 'a', from: index * 2 }));
    expect(parts(holes)).toHaveLength(MAX_OUTPUT_PARTS);
  });

  test('keeps the time of the last write', () => {
    expect(fold([{ text: 'a' }, { text: 'b', written_at: 77 }])?.lastAt).toBe(77);
  });

  /** A piece that mostly continues, and sometimes leaves a hole or starts over. */
  const piece = fc.record({
    text: fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 20 }),
      fc.constantFrom('line\n', 'é'.repeat(40_000), 'x'.repeat(90_000), '😀'.repeat(30_000)),
    ),
    step: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 50 }), fc.constant(-1)),
  });

  test('does not depend on where earlier events were merged', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), fc.array(fc.nat(59), { maxLength: 6 }), (pieces, cuts) => {
        let at = 0;
        const values = pieces.map(({ text, step }) => {
          const from = step < 0 ? 0 : at + step;
          at = from + utf8Length(text);
          return { text, from, to: at };
        });
        let direct: TaskOutput | null = null;
        const all: [AgUiEvent, number][] = [];
        let merged: TaskOutput | null = null;
        /** Joins each row to the older state. */
        let late: TaskOutput | null = null;
        for (const [index, value] of values.entries()) {
          direct = appendOutputs(direct, [[told(value), index]]);
          all.push([told(value), index]);
          merged = appendOutputs(merged, [[told(value), index]]);
          if (late !== null) late = appendOutputs(late, [[told(value), index]]);
          if (!cuts.includes(index)) continue;
          const whole: AgUiEvent = {
            type: 'CUSTOM',
            name: CUSTOM.taskOutput,
            value: { task_id: 't', output: JSON.parse(JSON.stringify(merged)) },
            metadata: { interlude: { whole: true } },
          };
          merged = appendOutputs(null, [[whole, index]]);
          late = appendOutputs(late, [[whole, index]]);
        }
        expect(merged).toEqual(direct);
        expect(appendOutputs(null, all)).toEqual(direct);
        if (late !== null) expect(late).toEqual(direct);
      }),
      { numRuns: 150 },
    );
  });
});
