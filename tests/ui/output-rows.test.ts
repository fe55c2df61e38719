import type { OutputPart, TaskOutput } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { endOfOutput, findInOutput, MAX_HITS, outputRows, segmentsOf } from '@/components/tasks/output-rows';
import { stripAnsi } from '@/components/ui/ansi';

const output = (...parts: (Partial<OutputPart> & { text: string })[]): TaskOutput => {
  let index = 0;
  const placed = parts.map(({ text, from = index, to = from + text.length }) => {
    index = to;
    return { from, to, text };
  });
  return { parts: placed, redacted: 0, lastAt: 0, hasEnded: false, error: null };
};
const texts = (of: TaskOutput) => outputRows(of).map((row) => (row.kind === 'line' ? row.text : row.bytes));

describe('outputRows', () => {
  test('keeps lines and their colours, which continue across lines', () => {
    const rows = outputRows(output({ text: 'a\n\u001b[31mred\nstill\u001b[0m\n\nend\n' }));
    expect(rows.map((row) => (row.kind === 'line' ? row.spans : null))).toEqual([
      [{ text: 'a', className: null }],
      [{ text: 'red', className: 'ansi-red' }],
      [{ text: 'still', className: 'ansi-red' }],
      [],
      [{ text: 'end', className: null }],
    ]);
  });

  test('marks dropped output at the beginning and in between', () => {
    expect(texts(output({ text: 'b\n', from: 100 }, { text: 'c\n', from: 5_000 }))).toEqual([null, 'b', 4_898, 'c']);
  });

  test('splits very long lines into rows of whole characters', () => {
    const rows = texts(output({ text: `${'😀'.repeat(5_000)}\nend` }));
    expect(rows.slice(0, -1).join('')).toBe('😀'.repeat(5_000));
    for (const row of rows) expect(String(row).length).toBeLessThanOrEqual(2_000);
    expect(rows.every((row) => String(row).isWellFormed())).toBe(true);
  });

  test('handles Windows line ends and overwritten lines', () => {
    const lines = texts(output({ text: `${'y'.repeat(5_000)}\r\nover\r${'z'.repeat(5_000)}\r\n` }));
    for (const line of lines) expect(String(line).length).toBeLessThanOrEqual(2_000);
    expect(lines.join('')).toBe('y'.repeat(5_000) + 'z'.repeat(5_000));
    const [row] = outputRows(output({ text: '\u001b[31ma\u001b[32mb'.repeat(100) }));
    expect(row?.kind === 'line' && row.spans.length).toBeLessThanOrEqual(301);
  });

  test('keeps the newest of very many lines', () => {
    const rows = texts(output({ text: `${'\n'.repeat(100_000)}end` }));
    expect([rows.length, rows[0], rows.at(-1)]).toEqual([20_001, null, 'end']);
  });

  test('shows the screen that a terminal would show', () => {
    const signs = fc.constantFrom(
      'a',
      'b',
      '\n',
      '\r',
      '\u001b[31m',
      '\u001b[0m',
      '\u001b]0;t\u0007',
      '\t',
      '\u202e',
      '\u0000',
    );
    fc.assert(
      fc.property(fc.array(signs, { maxLength: 80 }), (written) => {
        const text = written.join('');
        expect(texts(output({ text })).join('\n')).toBe(text === '' ? '' : stripAnsi(text.replace(/\r?\n$/, '')));
      }),
    );
  });
});

describe('endOfOutput', () => {
  const room = { lines: 3, characters: 40 };
  const shown = (text: string) => endOfOutput(output({ text }), room).rows.map((row) => row.text);

  test('is the last lines without surrounding blank ones, as many as fit', () => {
    expect(shown('a\nb\n\nc\n\n')).toEqual(['b', '', 'c']);
    expect(shown('a\n\n\n')).toEqual(['a']);
    expect(shown(`a\n${'b'.repeat(30)}\n${'c'.repeat(30)}`)).toEqual(['c'.repeat(30)]);
    expect(shown('')).toEqual([]);
  });

  test('reports whether that is all, even for one line longer than a row', () => {
    expect(endOfOutput(output({ text: '\n\na\nb\n\n' }), room).isAll).toBe(true);
    expect(endOfOutput(output({ text: 'a\nb\nc\nd\n' }), room).isAll).toBe(false);
    const long = endOfOutput(output({ text: 'x'.repeat(10_006) }), room);
    expect(long.isAll).toBe(false);
    expect(long.rows.map((row) => row.text).join('').length).toBeGreaterThan(10);
  });

  test('has the colour that started above, and no partial escape', () => {
    const [row] = endOfOutput(output({ text: `\u001b[31mred\n${'more\n'.repeat(50)}last` }), {
      lines: 1,
      characters: 9,
    }).rows;
    expect(row?.spans).toEqual([{ text: 'last', className: 'ansi-red' }]);
    for (let words = 1; words < 40; words++) {
      const { rows } = endOfOutput(output({ text: '\u001b[38;5;196mE\u001b[0m word '.repeat(words * 9) }), room);
      expect(rows.map((line) => line.text).join('')).not.toContain('96m');
    }
  });
});

describe('findInOutput', () => {
  const rows = outputRows(output({ text: 'one ERROR two\nerror error\nnone\n' }));

  test('finds a text in any case, from the beginning on', () => {
    expect(findInOutput(rows, 'error')).toEqual([
      { row: 0, start: 4, end: 9 },
      { row: 1, start: 0, end: 5 },
      { row: 1, start: 6, end: 11 },
    ]);
    expect(findInOutput(outputRows(output({ text: 'a.b a+b (c' })), '(c')).toHaveLength(1);
    expect(findInOutput(rows, '')).toEqual([]);
  });

  test('finds a hit across two rows of one line', () => {
    const long = outputRows(output({ text: `${'x'.repeat(1_997)}needle and on\nneedle` }));
    expect(findInOutput(long, 'needle')).toEqual([
      { row: 0, start: 1_997, end: 2_000 },
      { row: 2, start: 0, end: 6 },
    ]);
  });

  test('counts the newest of very many hits', () => {
    const many = outputRows(output({ text: `${'x'.repeat(100)}\n`.repeat(100) }));
    const hits = findInOutput(many, 'x');
    expect(hits).toHaveLength(MAX_HITS);
    expect(hits.at(-1)).toEqual({ row: 99, start: 99, end: 100 });
    expect(hits[0]).toEqual({ row: 50, start: 0, end: 1 });
  });

  test('marks hits across colours without changing the text', () => {
    const [row] = outputRows(output({ text: 'a \u001b[31mer\u001b[32mror\u001b[0m b error' }));
    if (row?.kind !== 'line') throw new Error('no line');
    const stretches = segmentsOf(row.spans, findInOutput([row], 'error'));
    expect(stretches.map(({ text, className, hit }) => [text, className, hit !== null])).toEqual([
      ['a ', null, false],
      ['er', 'ansi-red', true],
      ['ror', 'ansi-green', true],
      [' b ', null, false],
      ['error', null, true],
    ]);
  });
});
