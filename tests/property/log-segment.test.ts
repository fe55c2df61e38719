import type { LogLine } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LogWindow } from '@/components/logs/log-window';
import { currentSegment, farRowAt, isWithin, linePx, segmentAround, TOP_PX } from '@/components/logs/use-log-rows';

/** Maximum element height in all browsers. */
const MOST_PX = 17_000_000;

const lineOf = (number: number): LogLine => ({
  position: String(number),
  line: number,
  occurredAt: number,
  level: 'info',
  component: 'test',
  message: '',
});

/** A log with this many lines and only the newest loaded. */
function logOf(lines: number): LogWindow {
  const log = new LogWindow(true);
  log.extend(1, lines);
  log.insert({ from: String(lines), to: String(lines), lines: [lineOf(lines)] });
  return log;
}

const lineCount = fc.oneof(fc.integer({ min: 2, max: 3_000 }), fc.integer({ min: 3_000, max: 20_000_000 }));
const share = fc.double({ min: 0, max: 1, noNaN: true });

it('a scrollbar position maps to the same row before and after layout', () => {
  fc.assert(
    fc.property(lineCount, share, (lines, at) => {
      const log = logOf(lines);
      const row = Math.floor(at * (lines - 1));
      const stretch = segmentAround(log, row);
      const { begin, end, farPx } = stretch;
      expect(TOP_PX + (begin + lines - end) * farPx + (end - begin) * linePx()).toBeLessThan(MOST_PX);
      expect(isWithin(log, stretch, row)).toBe(true);
      const px = TOP_PX + begin * farPx + (row - begin) * linePx();
      expect(Math.abs(farRowAt(log, px + 1) - row)).toBeLessThanOrEqual(Math.ceil(linePx() / farPx));
    }),
  );
});

it('a segment surrounds its lines and follows the end while the reader does', () => {
  fc.assert(
    fc.property(lineCount, share, fc.integer({ min: 1, max: 5_000 }), (lines, at, more) => {
      const log = logOf(lines);
      const stretch = segmentAround(log, Math.floor(at * (lines - 1)));
      const number = log.numberAt(stretch.begin);
      const added = Array.from({ length: more }, (_, nth) => lineOf(lines + 1 + nth));
      log.append(added, String(lines + more));
      expect(log.numberAt(currentSegment(log, stretch, false).begin)).toBe(number);
      expect(currentSegment(log, stretch, true).end).toBe(log.rowCount);
    }),
  );
});
