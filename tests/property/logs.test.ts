import { positionToNumber } from '@interlude/protocol/position';
import { EVERY_LINE, type LogFilter, matchesLine, parseTerms } from '@interlude/protocol/projections/log-filter';
import { compileLogRegex } from '@interlude/protocol/projections/log-regex';
import type { LogLine, LogPage } from '@interlude/protocol/read-models';
import { utf8Length } from '@interlude/protocol/text';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { chunkBacklogs, chunkNextLines } from '@/lib/server/log-store/chunk-lines';
import { type Retention, removeOldLines } from '@/lib/server/log-store/remove-old-lines';
import { type LogPageLimits, type LogPlace, readLogComponents, readLogLines } from '@/lib/server/queries/read-logs';
import { type InProcessTarget, inProcessTarget, LineWriter, type WrittenLine } from '../support/ingest-target';

let target: InProcessTarget;
let now = 1_795_170_000_000;
beforeAll(async () => {
  target = await inProcessTarget(() => now);
});
afterAll(() => target.close());

async function index(agentId: string): Promise<void> {
  for (;;) {
    const backlog = (await chunkBacklogs(target.database.reader)).find((one) => one.agentId === agentId);
    if (backlog === undefined) return;
    await chunkNextLines(target.database, backlog);
  }
}

async function retain(agentId: string, retention: Partial<Retention>): Promise<void> {
  const whole = { maxAgeMs: 1e15, maxBytes: 1e15, ...retention };
  const remove = () => target.database.writes.run((transaction) => removeOldLines(transaction, agentId, whole, now));
  while ((await remove()) > 0);
}

let serial = 0;
const newWriter = () => new LineWriter(target, `agent-${++serial}`);

const T0 = 1_795_170_000_000;
const words = [
  'error',
  'Timeout',
  'retry 17',
  'straße',
  'ΟΔΟΣ',
  '日志',
  '100%',
  'a_b',
  '"quoted"',
  'KELVIN K',
  'x\ny',
  'ok',
];
const message = fc.array(fc.constantFrom(...words), { minLength: 0, maxLength: 6 }).map((some) => some.join(' '));
const line: fc.Arbitrary<WrittenLine> = fc.record({
  message: fc.oneof(
    { weight: 8, arbitrary: message },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  ),
  level: fc.constantFrom(...LOG_LEVELS),
  component: fc.constantFrom('hook', 'outbox', 'claude', ''),
  occurredAt: fc.integer({ min: T0, max: T0 + 1000 }),
  marker: fc.option(fc.constant({ kind: 'level', level: 'debug', previous: 'info', by: 'operator' } as const), {
    nil: undefined,
    freq: 60,
  }),
});

const pattern = fc.constantFrom(
  'retry \\d+',
  '(?i)TIMEOUT',
  '(?i)k',
  '^ok',
  'error|日志',
  '(a|b)_',
  'straß?e',
  'y$',
  '[x-z]\\n',
  'nothing here',
);
const filter: fc.Arbitrary<LogFilter> = fc.record({
  level: fc.option(fc.constantFrom(...LOG_LEVELS)),
  components: fc.subarray(['hook', 'claude', '', 'unknown'], { maxLength: 2 }),
  terms: fc
    .oneof(
      { weight: 3, arbitrary: fc.constant('') },
      fc.constantFrom(
        'TIMEOUT',
        'retry',
        'ok error',
        '日志',
        'οδος',
        '"error timeout"',
        '%',
        '_',
        'kelvin',
        'ß',
        'absent',
        '"retry 17 straße 日志"',
      ),
      message,
    )
    .map(parseTerms),
  regex: fc.option(
    pattern.map((source) => {
      const outcome = compileLogRegex(source);
      if (outcome.kind === 'refused') throw new Error(outcome.reason);
      return outcome.regex;
    }),
    { freq: 3 },
  ),
  from: fc.option(fc.integer({ min: T0, max: T0 + 1000 }), { freq: 4 }),
  to: fc.option(fc.integer({ min: T0, max: T0 + 1000 }), { freq: 4 }),
});

async function page(
  agentId: string,
  wanted: LogFilter,
  place: LogPlace,
  limit: number,
  limits: Partial<LogPageLimits> = {},
): Promise<LogPage> {
  const most = { bytes: 1024 * 1024, searchMs: Infinity, ...limits };
  const read = await readLogLines(unscoped(target.database), agentId, { filter: wanted, place, limit }, most);
  if (read === null) throw new Error(`unknown agent ${agentId}`);
  return read;
}

/** All matching lines, read page by page. */
async function walk(
  agentId: string,
  wanted: LogFilter,
  way: 'older' | 'newer',
  limit: number,
  limits: Partial<LogPageLimits> = {},
): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  let place: LogPlace = way === 'older' ? { kind: 'newest' } : { kind: 'after', position: 0 };
  for (;;) {
    const read = await page(agentId, wanted, place, limit, limits);
    if (way === 'older') lines.unshift(...read.lines);
    else lines.push(...read.lines);
    if (!read.hasMore) return lines;
    const edge = read.searchedTo ?? (way === 'older' ? read.lines[0] : read.lines.at(-1))?.position;
    if (edge === undefined) throw new Error('hasMore without a line to continue from');
    place = { kind: way === 'older' ? 'before' : 'after', position: positionToNumber(edge) };
  }
}

describe('an agent’s log', () => {
  test('is filtered alike by server and browser, indexed or not, from both ends', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { minLength: 150, maxLength: 400, size: 'max' }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.option(fc.integer({ min: 1, max: 3000 }), { freq: 2 }),
        fc.array(fc.tuple(filter, fc.integer({ min: 15, max: 60 })), { minLength: 6, maxLength: 6 }),
        fc.integer({ min: 100, max: 2000 }),
        async (lines, indexedShare, maxBytes, wanted, bytes) => {
          const writer = newWriter();
          const other = newWriter();
          const indexed = Math.floor(lines.length * indexedShare);
          for (let at = 0; at < indexed; at += 50) {
            await writer.write(lines.slice(at, Math.min(at + 50, indexed)));
            await other.write(lines.slice(0, 30));
          }
          await index(writer.agentId);
          await writer.write(lines.slice(indexed));
          if (maxBytes !== null) await retain(writer.agentId, { maxBytes });
          const all = await walk(writer.agentId, EVERY_LINE, 'older', 1000);
          for (const [one, limit] of wanted) {
            const expected = all.filter((candidate) => matchesLine(one, candidate));
            expect(await walk(writer.agentId, one, 'older', limit)).toEqual(expected);
            expect(await walk(writer.agentId, one, 'newer', limit)).toEqual(expected);
            // a search that times out at once continues from its cursor
            expect(await walk(writer.agentId, one, 'older', limit, { searchMs: 0 })).toEqual(expected);
            expect(await walk(writer.agentId, one, 'newer', limit, { searchMs: 0 })).toEqual(expected);
            // a page full of long lines ends at the last line
            expect(await walk(writer.agentId, one, 'older', limit, { bytes })).toEqual(expected);
            expect(await walk(writer.agentId, one, 'newer', limit, { bytes })).toEqual(expected);
            const middle = expected[expected.length >> 1];
            if (middle === undefined) continue;
            const place = { kind: 'around', position: positionToNumber(middle.position) } as const;
            const around = await page(writer.agentId, one, place, limit);
            const first = expected.findIndex(({ position }) => position === around.lines[0]?.position);
            expect(around.lines).toEqual(expected.slice(first, first + around.lines.length));
            expect(around.lines).toContainEqual(middle);
            expect([around.hasMore, around.hasNewer]).toEqual([
              first > 0,
              first + around.lines.length < expected.length,
            ]);
            expect(await page(writer.agentId, one, { kind: 'line', line: middle.line }, limit)).toEqual(around);
          }
        },
      ),
      { numRuns: 8, endOnFailure: true },
    );
  });

  test('pages without missing or duplicate lines while lines arrive and old ones are removed', async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('write' as const), count: fc.integer({ min: 1, max: 120 }) }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('index' as const) }) },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('retain' as const), lines: fc.integer({ min: 0, max: 300 }) }),
      },
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('older' as const), limit: fc.integer({ min: 1, max: 90 }) }),
      },
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('newer' as const), limit: fc.integer({ min: 1, max: 90 }) }),
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }), async (steps) => {
        const writer = newWriter();
        let written = 0;
        const write = async (count: number) => {
          // eight bytes each
          const some = Array.from({ length: count }, () => ({ message: String(++written).padStart(8, '0') }));
          await writer.write(some);
        };
        await write(40);
        const newest = await page(writer.agentId, EVERY_LINE, { kind: 'newest' }, 10);
        const older = newest.lines.map(({ line: number }) => number).reverse();
        let olderEdge = newest.lines[0]?.position ?? '';
        const newer: LogLine[] = [];
        let newerEdge = '0';
        const readNewer = async (limit: number) => {
          const place = { kind: 'after', position: positionToNumber(newerEdge) } as const;
          const read = await page(writer.agentId, EVERY_LINE, place, limit);
          newer.push(...read.lines);
          newerEdge = read.lines.at(-1)?.position ?? newerEdge;
          return read.hasMore;
        };
        for (const one of steps) {
          if (one.kind === 'write') await write(one.count);
          if (one.kind === 'index') await index(writer.agentId);
          if (one.kind === 'retain') await retain(writer.agentId, { maxBytes: one.lines * 8 });
          if (one.kind === 'newer') await readNewer(one.limit);
          if (one.kind === 'older') {
            const place = { kind: 'before', position: positionToNumber(olderEdge) } as const;
            const read = await page(writer.agentId, EVERY_LINE, place, one.limit);
            older.push(...read.lines.map(({ line: number }) => number).reverse());
            olderEdge = read.lines[0]?.position ?? olderEdge;
          }
        }
        while (await readNewer(100));

        // downward, lines are contiguous until the final marker
        for (const [at, number] of older.entries()) expect(number).toBe((older[0] ?? 0) - at);
        // upward, lines are contiguous or a marker for lines removed meanwhile
        let last = 0;
        for (const { line: number, marker, message: text } of newer) {
          if (marker === undefined) {
            expect(number).toBe(last + 1);
            expect(text).toBe(String(number).padStart(8, '0'));
          } else expect(marker).toMatchObject({ kind: 'retention', lines: number, bytes: number * 8 });
          expect(number).toBeGreaterThan(last);
          last = number;
        }
        expect(last).toBe(written);
      }),
      { numRuns: 20 },
    );
  });

  test('keeps exactly what retention must keep, with correct counts', async () => {
    const aged = fc.record({
      text: fc.string({ unit: 'grapheme', maxLength: 30 }),
      component: fc.constantFrom('a', 'b', 'c'),
      waitMs: fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 200 })),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(aged, { minLength: 1, maxLength: 300, size: 'max' }),
        fc.array(
          fc.record({
            maxAgeMs: fc.integer({ min: 1, max: 2000 }),
            maxBytes: fc.integer({ min: 0, max: 3000 }),
            isIndexed: fc.boolean(),
          }),
          { minLength: 1, maxLength: 4 },
        ),
        async (lines, rounds) => {
          const writer = newWriter();
          const kept: { text: string; component: string; receivedAt: number; line: number; size: number }[] = [];
          const together: WrittenLine[] = [];
          for (const [at, { text, component, waitMs }] of lines.entries()) {
            if (waitMs > 0) {
              await writer.write(together.splice(0));
              now += waitMs;
            }
            together.push({ message: text, component });
            kept.push({ text, component, receivedAt: now, line: at + 1, size: 0 });
          }
          await writer.write(together);
          const stored = await walk(writer.agentId, EVERY_LINE, 'newer', 1000);
          for (const [at, one] of kept.entries()) one.size = utf8Length(stored[at]?.message ?? '');
          let removed = { lines: 0, bytes: 0 };
          for (const { maxAgeMs, maxBytes, isIndexed } of rounds) {
            if (isIndexed) await index(writer.agentId);
            await retain(writer.agentId, { maxAgeMs, maxBytes });
            let left = kept.reduce((sum, { size }) => sum + size, 0);
            while (kept[0] !== undefined && (left > maxBytes || kept[0].receivedAt < now - maxAgeMs)) {
              left -= kept[0].size;
              removed = { lines: removed.lines + 1, bytes: removed.bytes + kept[0].size };
              kept.shift();
            }
            const read = await walk(writer.agentId, EVERY_LINE, 'older', 100);
            const marker = removed.lines === 0 ? [] : read.splice(0, 1);
            if (removed.lines > 0) {
              expect(marker[0]).toMatchObject({ line: removed.lines, marker: { kind: 'retention', ...removed } });
            }
            expect(read.map(({ line: number }) => number)).toEqual(kept.map(({ line: number }) => number));
            const { log } = await page(writer.agentId, EVERY_LINE, { kind: 'newest' }, 1);
            expect(log).toEqual({
              firstLine: removed.lines + 1,
              lastLine: lines.length,
              lines: kept.length,
              bytes: left,
            });
            const counts = new Map<string, number>();
            for (const { component } of kept) counts.set(component, (counts.get(component) ?? 0) + 1);
            expect((await readLogComponents(unscoped(target.database), writer.agentId))?.components).toEqual(
              [...counts].sort().map(([name, count]) => ({ name, lines: count })),
            );
          }
        },
      ),
      { numRuns: 10 },
    );
  });

  test('leaves nothing of removed lines in any table', async () => {
    const { rows } = await target.database.reader.execute(
      `SELECT (SELECT count(*) FROM log_chunks WHERE NOT EXISTS (
          SELECT 1 FROM log_lines WHERE position BETWEEN first_position AND last_position)) AS empty_chunks,
        (SELECT count(*) FROM log_search_docsize WHERE id NOT IN (SELECT id FROM log_chunks)) AS lost_texts`,
    );
    expect(rows[0]).toMatchObject({ empty_chunks: 0, lost_texts: 0 });
  });
});
