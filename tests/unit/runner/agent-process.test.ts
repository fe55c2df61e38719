import { JsonLines } from '@interlude/runner/host/agent-process';
import fc from 'fast-check';
import { expect, test } from 'vitest';

function read(maxLine?: number) {
  const values: unknown[] = [];
  const unreadable: string[] = [];
  const lines = new JsonLines(
    {
      onValue: (value) => values.push(value),
      onUnreadable: (why, line) => unreadable.push(`${why}: ${line}`),
    },
    maxLine,
  );
  return { lines, values, unreadable };
}

test('parses values in order, wherever the bytes are cut', () => {
  const values = fc.array(fc.oneof(fc.jsonValue(), fc.constant({ text: 'é😀\u2028' })), { maxLength: 8 });
  fc.assert(
    fc.property(values, fc.array(fc.nat(20), { minLength: 1, maxLength: 40 }), (given, cuts) => {
      const bytes = Buffer.from(given.map((value) => `${JSON.stringify(value)}\n`).join(''));
      const { lines, values: got, unreadable } = read();
      let index = 0;
      for (let turn = 0; index < bytes.length; turn += 1) {
        const length = 1 + (cuts[turn % cuts.length] ?? 0);
        lines.write(bytes.subarray(index, index + length));
        index += length;
      }
      lines.end();
      expect(got).toEqual(JSON.parse(JSON.stringify(given)));
      expect(unreadable).toEqual([]);
    }),
  );
});

test('reports a line that is not JSON and reads on', () => {
  const { lines, values, unreadable } = read();
  lines.write(Buffer.from('warning: hello\n\n  {"a":1}\r\n{"b":\n{"c":3}\n'));
  expect(values).toEqual([{ a: 1 }, { c: 3 }]);
  expect(unreadable).toEqual(['not JSON: warning: hello', 'not JSON: {"b":']);
});

test('drops an overlong line and reads on', () => {
  const { lines, values, unreadable } = read(1_000);
  for (let part = 0; part < 100; part += 1) lines.write(Buffer.from('x'.repeat(100)));
  lines.write(Buffer.from('\n{"a":1}\n'));
  expect(values).toEqual([{ a: 1 }]);
  expect(unreadable).toEqual([`too long: ${'x'.repeat(200)}`]);
});

test('reports an incomplete last line as cut off', () => {
  const { lines, values, unreadable } = read();
  lines.write(Buffer.from('{"a":1}\n{"b":'));
  lines.end();
  expect(values).toEqual([{ a: 1 }]);
  expect(unreadable).toEqual(['cut off: {"b":']);
});
