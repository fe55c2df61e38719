import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Gap, LogBuffer } from '@/components/logs/log-buffer';
import { comparePositions, ORIGIN, type Position } from '@/lib/protocol/position';
import type { LogLine } from '@/lib/protocol/read-models';

const LIMITS = { lines: 60, chars: 10_000, margin: 6, tail: 5 };
const PAGE = 7;

/** A log as the server has it, of which only some lines match. */
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
  | { kind: 'fill'; which: number; from: 'above' | 'below' }
  | { kind: 'older' }
  | { kind: 'newest' }
  | { kind: 'around'; at: number }
  | { kind: 'first' }
  | { kind: 'trim'; at: number | null };

const share = fc.double({ min: 0, max: 1, noNaN: true });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('live' as const), gaps: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 25 }) }),
  fc.record({
    kind: fc.constant('fill' as const),
    which: fc.nat(5),
    from: fc.constantFrom('above' as const, 'below' as const),
  }),
  fc.constant({ kind: 'older' as const }),
  fc.constant({ kind: 'newest' as const }),
  fc.record({ kind: fc.constant('around' as const), at: share }),
  fc.constant({ kind: 'first' as const }),
  fc.record({ kind: fc.constant('trim' as const), at: fc.option(share) }),
);

describe.each([
  ['of every line', () => true],
  ['of some lines', (number: number) => number % 3 === 0],
] as const)('a buffer %s', (_name, matches) => {
  const countable = matches(1);

  it('has each line once and in order, and says of every gap how many are in it', () => {
    fc.assert(
      fc.property(fc.nat(80), fc.array(step, { maxLength: 40 }), (written, steps) => {
        const server = new ServerLog(matches);
        for (let count = 0; count < written; count++) server.write(1 + (count % 2));
        const buffer = new LogBuffer(countable, LIMITS);
        openNewest(buffer, server);
        buffer.beginLive(server.position);
        for (const one of steps) {
          run(one, buffer, server);
          check(buffer, server, countable);
        }
        fillEverything(buffer, server);
        expect([...buffer.lines()].map(({ line }) => line)).toEqual(server.lines.map(({ line }) => line));
      }),
      { numRuns: 150 },
    );
  });
});

function openNewest(buffer: LogBuffer, server: ServerLog): void {
  const { lines, hasMore } = server.before(null);
  buffer.extend(1, server.lastLine);
  buffer.insert({ from: hasMore ? (lines[0]?.position ?? ORIGIN) : ORIGIN, to: server.position, lines });
}

function run(one: Step, buffer: LogBuffer, server: ServerLog): void {
  switch (one.kind) {
    case 'live': {
      const lines = one.gaps.flatMap((gap) => server.write(gap) ?? []);
      buffer.append(lines, server.position);
      return;
    }
    case 'fill': {
      const gaps = gapsOf(buffer);
      const gap = gaps[one.which % gaps.length];
      if (gap) fill(buffer, server, gap, one.from);
      return;
    }
    case 'older':
      if (buffer.older) fill(buffer, server, buffer.older, 'below');
      return;
    case 'newest':
      openNewest(buffer, server);
      return;
    case 'around': {
      const line = server.lines[Math.floor(one.at * (server.lines.length - 1))];
      if (!line) return;
      const older = server.before(line.position);
      const newer = server.after(line.position);
      const lines = [...older.lines, line, ...newer.lines];
      buffer.extend(1, server.lastLine);
      buffer.insert({
        from: older.hasMore ? (lines[0]?.position as string) : ORIGIN,
        to: newer.hasMore ? (lines.at(-1)?.position as string) : server.position,
        lines,
      });
      return;
    }
    case 'first':
      fill(buffer, server, { before: null, after: ORIGIN, lines: null, skipped: false }, 'above');
      return;
    case 'trim': {
      const held = [...buffer.lines()];
      const at = one.at === null ? null : (held[Math.floor(one.at * (held.length - 1))]?.position ?? null);
      const read = at === null ? [] : aroundOf(held, at);
      buffer.trim(at);
      expect(buffer.lineCount).toBeLessThanOrEqual(Math.max(LIMITS.lines, 2 * LIMITS.margin + LIMITS.tail + 1));
      for (const { position } of read) expect(buffer.indexOf(position)).toBeGreaterThanOrEqual(0);
      for (const { position } of held.slice(-LIMITS.tail)) expect(buffer.indexOf(position)).toBeGreaterThanOrEqual(0);
      return;
    }
  }
}

/** What is on the reader's screen. */
function aroundOf(held: LogLine[], at: Position): LogLine[] {
  const index = held.findIndex(({ position }) => position === at);
  return held.slice(Math.max(0, index - 3), index + 3);
}

function fill(buffer: LogBuffer, server: ServerLog, gap: Gap, from: 'above' | 'below'): void {
  if (gap.before === null || (from === 'above' && gap.after !== null)) {
    const edge = gap.after ?? ORIGIN;
    const { lines, hasMore } = server.after(edge);
    buffer.insert({ from: edge, to: hasMore ? (lines.at(-1)?.position as string) : server.position, lines });
  } else {
    const { lines, hasMore } = server.before(gap.before);
    buffer.insert({ from: hasMore ? (lines[0]?.position as string) : ORIGIN, to: gap.before, lines });
  }
}

function gapsOf(buffer: LogBuffer): Gap[] {
  const rows = Array.from({ length: buffer.rowCount }, (_, index) => buffer.rowAt(index));
  const between = rows.flatMap((row) => (row?.kind === 'gap' ? [row.gap] : []));
  return [buffer.older, ...between, buffer.newer].filter((gap) => gap !== null);
}

function fillEverything(buffer: LogBuffer, server: ServerLog): void {
  for (let tries = 0; tries < 500; tries++) {
    const gap = gapsOf(buffer)[0];
    if (!gap) return;
    fill(buffer, server, gap, tries % 2 === 0 ? 'above' : 'below');
  }
  throw new Error('a gap never closes');
}

function check(buffer: LogBuffer, server: ServerLog, countable: boolean): void {
  const rows = Array.from({ length: buffer.rowCount }, (_, index) => buffer.rowAt(index));
  expect(buffer.rowAt(rows.length)).toBeNull();
  const held = [...buffer.lines()];
  expect(rows.filter((row) => row?.kind === 'line')).toHaveLength(held.length);
  const known = new Map(server.lines.map((line, rank) => [line.position, rank]));
  let before = -1;
  let gap: Gap | null = buffer.older;
  const keys = new Set<string>();
  for (const [index, row] of rows.entries()) {
    keys.add(buffer.keyAt(index));
    if (row === null) throw new Error(`row ${index} is none`);
    if (row.kind === 'gap') {
      gap = row.gap;
      continue;
    }
    const rank = known.get(row.line.position);
    if (rank === undefined) throw new Error('a line that the server does not have');
    const missing = rank - before - 1;
    if (gap === null) expect(missing).toBe(0);
    else if (countable) expect(gap.lines).toBe(missing);
    expect(missing).toBeGreaterThanOrEqual(0);
    expect(buffer.indexOf(row.line.position)).toBe(index);
    before = rank;
    gap = null;
  }
  expect(keys.size).toBe(rows.length);
  const missing = server.lines.length - 1 - before;
  if (buffer.newer === null)
    expect(held.length === 0 ? buffer.older !== null || missing === 0 : missing === 0).toBe(true);
  else if (countable) expect(buffer.newer.lines).toBe(missing);
}
