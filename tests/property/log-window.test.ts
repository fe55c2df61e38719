import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import type { LogLine } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Gap, type LogRow, LogWindow, type Run } from '@/components/logs/log-window';

const LIMITS = { reach: 20, chars: 10_000, margin: 6, tail: 5 };
const PAGE = 7;

/** A server log in which only some lines match. */
class ServerLog {
  readonly lines: LogLine[] = [];
  #position = 0;
  #number = 0;

  readonly #matches: (number: number) => boolean;

  constructor(matches: (number: number) => boolean) {
    this.#matches = matches;
  }

  get position(): Position {
    return String(this.#position);
  }

  get lastLine(): number {
    return this.#number;
  }

  /** @returns the line if it matches */
  write(gap: number): LogLine | null {
    this.#position += gap;
    this.#number += 1;
    const line: LogLine = {
      position: this.position,
      line: this.#number,
      occurredAt: this.#number,
      level: 'info',
      component: 'test',
      message: 'x'.repeat(this.#number % 9),
    };
    if (!this.#matches(line.line)) return null;
    this.lines.push(line);
    return line;
  }

  before(edge: Position | null) {
    const older = this.lines.filter((line) => edge === null || comparePositions(line.position, edge) < 0);
    return { lines: older.slice(-PAGE), hasMore: older.length > PAGE };
  }

  after(edge: Position) {
    const newer = this.lines.filter((line) => comparePositions(line.position, edge) > 0);
    return { lines: newer.slice(0, PAGE), hasMore: newer.length > PAGE };
  }
}

type Step =
  | { kind: 'live'; gaps: number[] }
  | { kind: 'skip'; gaps: number[] }
  | { kind: 'fill'; which: number; from: 'above' | 'below' }
  | { kind: 'older' | 'newest' | 'first' | 'ask' | 'answer' }
  | { kind: 'around'; at: number }
  | { kind: 'trim'; at: number | null };

const share = fc.double({ min: 0, max: 1, noNaN: true });
const gaps = fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 25 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('live' as const), gaps }) },
  fc.record({ kind: fc.constant('skip' as const), gaps }),
  fc.record({
    kind: fc.constant('fill' as const),
    which: fc.nat(5),
    from: fc.constantFrom('above' as const, 'below' as const),
  }),
  fc.record({ kind: fc.constantFrom('older' as const, 'newest', 'first', 'ask', 'answer') }),
  fc.record({ kind: fc.constant('around' as const), at: share }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('trim' as const), at: fc.option(share) }) },
);

describe.each([
  ['of every line', () => true],
  ['of some lines', (number: number) => number % 3 === 0],
] as const)('a window %s', (_name, matches) => {
  const isDense = matches(1);

  it('has each line once and in order, and a row or count for each gap', () => {
    fc.assert(
      fc.property(fc.nat(80), fc.option(share), fc.array(step, { maxLength: 40 }), (written, opened, steps) => {
        const server = new ServerLog(matches);
        for (let count = 0; count < written; count++) server.write(1 + (count % 2));
        const log = new LogWindow(isDense, LIMITS);
        const pending: Run[] = [];
        log.extend(1, server.lastLine);
        log.insert((opened === null ? null : around(server, opened)) ?? newest(server));
        log.beginLive(server.position);
        for (const one of steps) {
          run(one, log, server, pending);
          check(log, server, isDense);
        }
        fillEverything(log, server);
        expect([...log.lines()].map(({ line }) => line)).toEqual(server.lines.map(({ line }) => line));
        expect([log.rowCount, log.hasMore]).toEqual([server.lines.length, false]);
      }),
      { numRuns: 150 },
    );
  });
});

function newest(server: ServerLog): Run {
  const { lines, hasMore } = server.before(null);
  return { from: hasMore ? (lines[0]?.position ?? ORIGIN) : ORIGIN, to: server.position, lines };
}

function around(server: ServerLog, at: number): Run | null {
  const line = server.lines[Math.floor(at * (server.lines.length - 1))];
  if (!line) return null;
  const [older, newer] = [server.before(line.position), server.after(line.position)];
  const lines = [...older.lines, line, ...newer.lines];
  return {
    from: older.hasMore ? (lines[0]?.position as string) : ORIGIN,
    to: newer.hasMore ? (lines.at(-1)?.position as string) : server.position,
    lines,
  };
}

function run(one: Step, log: LogWindow, server: ServerLog, pending: Run[]): void {
  switch (one.kind) {
    case 'live': {
      const lines = one.gaps.flatMap((gap) => server.write(gap) ?? []);
      log.extend(1, server.lastLine);
      log.append(lines, server.position);
      return;
    }
    case 'skip':
      for (const gap of one.gaps) server.write(gap);
      log.extend(1, server.lastLine);
      log.skipLive(server.position);
      return;
    case 'fill': {
      const missing = gapsOf(log);
      const gap = missing[one.which % missing.length];
      if (gap) log.insert(page(server, gap, one.from));
      return;
    }
    case 'older':
      if (log.older) log.insert(page(server, log.older, 'below'));
      return;
    case 'newest':
      log.insert(newest(server));
      return;
    case 'first':
      log.insert(pageAfter(server, ORIGIN));
      return;
    // a page is in transit while other steps run
    case 'ask':
      pending.push(around(server, 0.5) ?? newest(server));
      return;
    case 'answer': {
      const answer = pending.shift();
      if (answer) log.insert(answer);
      return;
    }
    case 'around': {
      const found = around(server, one.at);
      if (found) log.insert(found);
      return;
    }
    case 'trim': {
      const held = [...log.lines()];
      const at = one.at === null ? null : (held[Math.floor(one.at * (held.length - 1))] ?? null);
      log.trim(at?.line ?? null);
      const { reach, tail, margin } = LIMITS;
      expect(log.heldCount).toBeLessThanOrEqual(2 * reach + tail + margin);
      for (const { position } of aroundOf(held, at)) expect(log.indexOf(position)).toBeGreaterThanOrEqual(0);
      for (const { position } of held.slice(-tail)) expect(log.indexOf(position)).toBeGreaterThanOrEqual(0);
      return;
    }
  }
}

/** The visible lines. */
function aroundOf(held: LogLine[], at: LogLine | null): LogLine[] {
  const index = at === null ? held.length : held.indexOf(at);
  return held.slice(Math.max(0, index - 3), index + 3);
}

function page(server: ServerLog, gap: Gap, from: 'above' | 'below'): Run {
  if (from === 'above') return pageAfter(server, gap.after ?? ORIGIN);
  if (gap.before === null) return newest(server);
  const { lines, hasMore } = server.before(gap.before);
  return { from: hasMore ? (lines[0]?.position as string) : ORIGIN, to: gap.before, lines };
}

function pageAfter(server: ServerLog, edge: Position): Run {
  const { lines, hasMore } = server.after(edge);
  return { from: edge, to: hasMore ? (lines.at(-1)?.position as string) : server.position, lines };
}

function rowsOf(log: LogWindow): LogRow[] {
  return Array.from({ length: log.rowCount }, (_, index) => log.rowAt(index)).filter((row) => row !== null);
}

function gapsOf(log: LogWindow): Gap[] {
  const between = rowsOf(log).flatMap((row) =>
    row.kind === 'line' || (row.kind === 'missing' && row.at > 0) ? [] : [row.gap],
  );
  return [log.older, ...between].filter((gap) => gap !== null);
}

function fillEverything(log: LogWindow, server: ServerLog): void {
  for (let tries = 0; tries < 500; tries++) {
    const gap = gapsOf(log)[0];
    if (!gap) return;
    log.insert(page(server, gap, tries % 2 === 0 ? 'above' : 'below'));
  }
  throw new Error('a gap never closed');
}

function check(log: LogWindow, server: ServerLog, isDense: boolean): void {
  const rows = rowsOf(log);
  expect(rows).toHaveLength(log.rowCount);
  expect(log.rowAt(rows.length)).toBeNull();
  expect(rows.filter(({ kind }) => kind === 'line')).toHaveLength(log.heldCount);
  expect(new Set(rows.map((_, index) => log.keyAt(index))).size).toBe(rows.length);
  const known = new Map(server.lines.map((line, rank) => [line.position, rank]));
  let before = -1;
  let gap: Gap | null = log.older;
  let missingRows = 0;
  for (const [index, row] of rows.entries()) {
    if (isDense) expect(log.indexOfNumber(log.numberAt(index))).toBe(index);
    if (row.kind !== 'line') {
      gap = row.gap;
      if (row.kind === 'missing') missingRows += 1;
      continue;
    }
    const rank = known.get(row.line.position);
    if (rank === undefined) throw new Error('a line unknown to the server');
    const missing = rank - before - 1;
    expect(missing).toBeGreaterThanOrEqual(0);
    if (gap === null || !gap.hasMore) expect(missingRows).toBe(missing);
    expect([log.indexOf(row.line.position), log.indexOfNumber(row.line.line)]).toEqual([index, index]);
    [before, gap, missingRows] = [rank, null, 0];
  }
  // newer lines are known to be absent, or represented by a row
  const newer = server.lines.length - 1 - before;
  if (gap === null || !gap.hasMore) expect(missingRows).toBe(newer);
}
