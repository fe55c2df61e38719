import { MAX_LOG_MESSAGE_BYTES } from '@interlude/protocol/limits';
import { EVERY_LINE, type LogFilter } from '@interlude/protocol/projections/log-filter';
import { compileLogRegex } from '@interlude/protocol/projections/log-regex';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { chunkBacklogs, chunkNextLines } from '@/lib/server/log-store/chunk-lines';
import { SLICE_BYTES } from '@/lib/server/queries/log-chunks';
import { downloadLog } from '@/lib/server/queries/read-logs';
import { scanLog } from '@/lib/server/queries/scan-log';
import { LineWriter } from '@/tests/support/ingest-target';
import { alwaysYield } from '../../support/event-loop';
import { type InProcessTarget, inProcessTarget } from '../../support/ingest-target';

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await target.close();
});

const AGENT = 'a1';
const LONG = 'ab'.repeat(MAX_LOG_MESSAGE_BYTES / 2);
const LINES = 17;
/** The newest half of these lines is not indexed. */
const MANY = 128;
const RANGE = { direction: 'newer', edge: 0, newest: 1e9, limit: 1000, bytes: 1e9 } as const;

function filterBy(source: string): LogFilter {
  const outcome = compileLogRegex(source);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  return { ...EVERY_LINE, regex: outcome.regex };
}

async function write(count: number, into = target): Promise<void> {
  const writer = new LineWriter(into, AGENT);
  const lines = Array.from({ length: count }, () => ({ message: LONG }));
  // The most of one request.
  for (let index = 0; index < count; index += 64) await writer.write(lines.slice(index, index + 64));
}

async function index({ database }: InProcessTarget): Promise<void> {
  for (;;) {
    const [backlog] = await chunkBacklogs(database.reader);
    if (backlog === undefined) return;
    await chunkNextLines(database, backlog);
  }
}

test('a search yields after each long line', async () => {
  await write(LINES);
  const turns = alwaysYield();
  const { end } = await scanLog(unscoped(target.database), AGENT, filterBy('[cd]'), { ...RANGE, budgetMs: Infinity });
  expect(end).toBe('log');
  expect(turns()).toBeGreaterThanOrEqual(LINES);
});

test('keeps every line of a slow database answer', async () => {
  const writer = new LineWriter(target, AGENT);
  await writer.write(Array.from({ length: 10 }, (_, index) => ({ message: `line ${index}` })));
  const { reader } = target.database;
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const slow: typeof reader = Object.create(reader, {
    batch: {
      value: async (...args: Parameters<typeof reader.batch>) => {
        const answer = await reader.batch(...args);
        nowMs += 5_000;
        return answer;
      },
    },
  });
  for (const filter of [EVERY_LINE, filterBy('^line')]) {
    const range = { ...RANGE, direction: 'older', edge: 1e9, limit: 3, budgetMs: 100 } as const;
    const { lines, end } = await scanLog({ reader: slow, redacts: false }, AGENT, filter, range);
    expect([lines.map(({ message }) => message), end]).toEqual([['line 9', 'line 8', 'line 7'], 'full']);
  }
});

describe('a half-indexed log', () => {
  let indexed: InProcessTarget;
  beforeAll(async () => {
    indexed = await inProcessTarget();
    await write(MANY, indexed);
    await index(indexed);
  });
  afterAll(() => indexed.close());

  test.each(['newer', 'older'] as const)(
    'a search for %s lines that runs out of time resumes behind the line it reached',
    async (direction) => {
      alwaysYield();
      const filter = filterBy('^a');
      let edge = direction === 'newer' ? 0 : 1e9;
      const found: string[] = [];
      for (let scans = 0; scans < 3 * MANY; scans += 1) {
        const range = { ...RANGE, direction, edge, budgetMs: 200 };
        const { lines, end, searchedTo } = await scanLog(unscoped(indexed.database), AGENT, filter, range);
        expect(lines.length).toBeLessThanOrEqual(1);
        found.push(...lines.map(({ position }) => position));
        if (end === 'log') break;
        edge = searchedTo;
      }
      expect(found).toHaveLength(MANY);
      expect(new Set(found).size).toBe(MANY);
    },
  );

  test('reads chunks in slices of bounded size', async () => {
    // With a frozen clock every slice grows to its limit.
    vi.spyOn(performance, 'now').mockReturnValue(0);
    const reads = vi.spyOn(indexed.database.reader, 'execute');
    const filter = filterBy('^a');
    const { lines } = await scanLog(unscoped(indexed.database), AGENT, filter, { ...RANGE, budgetMs: Infinity });
    expect(lines).toHaveLength(MANY);
    const slices = (await Promise.all(reads.mock.results.map(({ value }) => value))).map(({ rows }) => rows.length);
    expect(slices.reduce((most, rows) => Math.max(most, rows), 0)).toBe(SLICE_BYTES / MAX_LOG_MESSAGE_BYTES);
  });
});

test('a download yields after each long line', async () => {
  await write(LINES);
  const turns = alwaysYield();
  const stream = await downloadLog(unscoped(target.database), AGENT, filterBy('[cd]'), 'somebody');
  const text = await new Response(stream).text();
  expect(text).toBe('');
  expect(turns()).toBeGreaterThanOrEqual(LINES);
});
