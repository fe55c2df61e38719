import type { RecordedLine } from '@interlude/runner/adapters/recordings';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expectValidEvents, playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

/** Values an agent may send anywhere: wrong types, empty, endless, names from Object.prototype. */
const HOSTILE: readonly unknown[] = [
  null,
  0,
  -1,
  '',
  true,
  [],
  {},
  [[null, {}, 7]],
  '__proto__',
  'constructor',
  'a\ud800b',
  'x'.repeat(10_000),
  '"\u0000'.repeat(300_000),
];
/** Too deep for recursive readers. */
const ENDLESS = JSON.parse(`${'[{"a":'.repeat(20_000)}1${'}]'.repeat(20_000)}`);
type Path = readonly string[];

function* pathsIn(value: unknown, at: Path = []): Generator<Path> {
  if (at.length > 0) yield at;
  if (typeof value !== 'object' || value === null) return;
  for (const [name, one] of Object.entries(value)) yield* pathsIn(one, [...at, name]);
}

function replaced(value: unknown, [name, ...rest]: Path, by: unknown): unknown {
  if (name === undefined) return by;
  if (Array.isArray(value)) return value.map((one, index) => (`${index}` === name ? replaced(one, rest, by) : one));
  const fields = value as Record<string, unknown>;
  return { ...fields, [name]: replaced(fields[name], rest, by) };
}

/** Fields to replace: each field of each frame type, once per recording. */
function placesIn(kind: string): { name: string; lines: RecordedLine[]; at: number; path: Path }[] {
  return recordingsOf(kind).flatMap((name) => {
    const lines = recordedLines(kind, name);
    const seen = new Set<string>();
    return lines.flatMap(({ fields }, index) => {
      const said = JSON.stringify(fields);
      const what = said.match(/"(method|type|sessionUpdate|subtype|status|path)":"[^"]*"/g)?.join() ?? '';
      return [...pathsIn(fields)].flatMap((path) => {
        const key = `${what} ${path.join('.').replace(/\.\d+/g, '.#')}`;
        if (seen.has(key)) return [];
        seen.add(key);
        return [{ name, lines, at: index, path }];
      });
    });
  });
}

describe.each(['acp', 'codex', 'opencode'])('a recording of %s', (kind) => {
  test('is well formed with any value in any field', () => {
    const places = placesIn(kind);
    expect(places.length).toBeGreaterThan(100);
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.constantFrom(...HOSTILE), ({ name, lines, at, path }, value) => {
        const bad = lines.map((line, index) =>
          index === at ? { ...line, fields: replaced(line.fields, path, value) as Record<string, unknown> } : line,
        );
        const what = `${name}, line ${at + 1}: ${path.join('.')} = ${JSON.stringify(value)?.slice(0, 20)}`;
        expect(() => expectValidEvents(playRecorded(kind, bad)), what).not.toThrow();
      }),
      { numRuns: 400 },
    );
  });

  test('is well formed with any frame nested too deeply', () => {
    for (const name of recordingsOf(kind)) {
      const lines = recordedLines(kind, name);
      const seen = new Set<string>();
      const bad = lines.flatMap((line, index) => {
        const paths = [...pathsIn(line.fields.msg)].filter((path) => path.length > 1);
        const path = paths[index % Math.max(paths.length, 1)];
        const key = String(path?.join('.'));
        if (path === undefined || seen.has(key)) return [line];
        seen.add(key);
        return [line, { ...line, fields: { ...line.fields, msg: replaced(line.fields.msg, path, ENDLESS) } }];
      });
      expect(() => expectValidEvents(playRecorded(kind, bad)), name).not.toThrow();
    }
  });
});
