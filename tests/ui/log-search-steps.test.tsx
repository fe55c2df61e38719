import type { LogRegex } from '@interlude/protocol/projections/log-filter';
import { EVERY_LINE, type LogFilter } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LineSearch } from '@/components/logs/line-search';
import { LogRow } from '@/components/logs/log-row';
import { LiveMatcher } from '@/components/logs/log-store';
import { LogWindow } from '@/components/logs/log-window';

/** Cost of one line: milliseconds of a clock that nothing else advances. */
const LINE_MS = 3;
/** Lines per slice; the last one starts within it. */
const AT_ONCE = 3;

let now = 0;
let idles: (() => void)[] = [];
let tested: string[] = [];
let lookedFor = 0;

beforeEach(() => {
  now = 0;
  idles = [];
  tested = [];
  lookedFor = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  vi.stubGlobal('window', globalThis);
  vi.stubGlobal('requestIdleCallback', (run: () => void) => idles.push(run));
  vi.stubGlobal('cancelIdleCallback', (handle: number) => {
    idles[handle - 1] = () => {};
  });
  vi.useFakeTimers({ toFake: ['setTimeout'] });
});
afterEach(() => {
  // runs pending jobs of the page
  vi.runAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Matches "hit". Testing a line and locating its hit each cost LINE_MS. */
const slow: LogRegex = {
  source: 'hit',
  required: null,
  test(message) {
    now += LINE_MS;
    tested.push(message);
    return message.includes('hit');
  },
  *hits(message) {
    for (let index = message.indexOf('hit'); index !== -1; index = message.indexOf('hit', index + 3)) {
      now += LINE_MS;
      lookedFor += 1;
      yield [index, index + 3];
    }
  },
};
const filter: LogFilter = { ...EVERY_LINE, regex: slow };

const aLine = (number: number, message = `hit ${number}`): LogLine => ({
  position: String(number),
  line: number,
  occurredAt: number,
  level: 'info',
  component: 'mirror',
  message,
});
const lines = (count: number, from = 1) => Array.from({ length: count }, (_, index) => aLine(from + index));

describe('live lines', () => {
  const listen = (mostChars = Number.POSITIVE_INFINITY) => {
    const taken: string[] = [];
    const live = new LiveMatcher(filter, mostChars, {
      matched: (matching, to) => void taken.push(...matching.map(({ position }) => position), `to ${to}`),
      skipped: (to) => void taken.push(`skipped to ${to}`),
    });
    return { live, taken };
  };

  it('are matched in slices, in order, however many arrive at once', () => {
    const { live, taken } = listen();
    live.push(lines(100));
    expect(tested).toHaveLength(AT_ONCE);
    expect(taken).toEqual(['1', '2', '3', 'to 3']);
    live.push(lines(100, 101));
    expect(tested).toHaveLength(AT_ONCE);
    for (let turns = 1; idles.length > 0; turns++) {
      idles.shift()?.();
      expect(tested.length).toBeLessThanOrEqual((turns + 1) * AT_ONCE);
    }
    expect(tested).toEqual(lines(200).map(({ message }) => message));
    expect(taken.filter((position) => !position.startsWith('to'))).toEqual(lines(200).map(({ position }) => position));
    expect(taken.at(-1)).toBe('to 200');
  });

  it('advance the position even if none matches', () => {
    const { live, taken } = listen();
    live.push([aLine(1, 'nothing'), aLine(2, 'nothing')]);
    expect(taken).toEqual(['to 2']);
  });

  it('are skipped and reported when too much waits', () => {
    const { live, taken } = listen(1_000);
    live.push([...lines(3), aLine(4, 'x'.repeat(1_001)), aLine(5)]);
    expect(taken).toEqual(['1', '2', '3', 'to 3', 'skipped to 5']);
    idles.shift()?.();
    live.push([aLine(6)]);
    expect(taken.slice(-2)).toEqual(['6', 'to 6']);
    expect(tested).toHaveLength(4);
  });

  it('are dropped when the store closes', () => {
    const { live, taken } = listen();
    live.push(lines(100));
    live.close();
    for (const run of idles) run();
    expect(tested).toHaveLength(AT_ONCE);
    expect(taken.at(-1)).toBe('to 3');
  });

  it('leave a gap when skipped, which can be loaded', () => {
    const log = new LogWindow(false);
    log.insert({ from: '0', to: '3', lines: lines(3) });
    log.beginLive('3');
    log.skipLive('5');
    log.append([aLine(6)], '6');
    expect([0, 1, 2, 3, 4].map((row) => log.rowAt(row))).toMatchObject([
      { line: { position: '1' } },
      { line: { position: '2' } },
      { line: { position: '3' } },
      { kind: 'more', gap: { after: '3', before: '6', lines: 0, skipped: true } },
      { line: { position: '6' } },
    ]);
    log.insert({ from: '3', to: '6', lines: lines(2, 4) });
    expect(log.rowCount).toBe(6);
  });

  it('leave a row each when skipped without a filter, which can be loaded', () => {
    const log = new LogWindow(true);
    log.insert({ from: '0', to: '3', lines: lines(3) });
    log.beginLive('3');
    log.extend(1, 5);
    log.skipLive('5');
    log.append([aLine(6)], '6');
    expect([3, 4].map((row) => log.rowAt(row))).toMatchObject([
      { kind: 'missing', line: 4, at: 0, gap: { after: '3', before: '6', lines: 2 } },
      { kind: 'missing', line: 5, at: 1 },
    ]);
    log.insert({ from: '3', to: '6', lines: lines(2, 4) });
    expect([...log.lines()]).toEqual(lines(6));
    expect(log.rowCount).toBe(6);
  });
});

describe('searched lines', () => {
  const SETTINGS = { isRelative: false, isUtc: true, wraps: false, dims: true };
  const row = (search: LineSearch, line: LogLine) =>
    renderToStaticMarkup(
      <LogRow
        line={line}
        settings={SETTINGS}
        search={search}
        isCursor={false}
        isTarget={false}
        isInSpan={false}
        isUnfolded={false}
        onLine={() => {}}
        onUnfold={() => {}}
        onContext={null}
        hasLinks
      />,
    );
  const isDim = (markup: string) => markup.includes('**:text-ink-3!');

  it('are searched once, however often they render', () => {
    const search = new LineSearch(filter, true);
    const line = aLine(1, 'nothing');
    for (let times = 0; times < 5; times++) {
      expect(isDim(row(search, line))).toBe(true);
      vi.runAllTimers();
    }
    expect(tested).toEqual(['nothing']);
  });

  it('are searched during the render while there is time, and the rest in the idle queue', () => {
    const search = new LineSearch(filter, true);
    const shown = Array.from({ length: 60 }, (_, index) =>
      aLine(index + 1, index % 2 === 0 ? `hit ${index}` : `other ${index}`),
    );
    for (const line of shown) row(search, line);
    expect(tested.length + lookedFor).toBeLessThanOrEqual(2 * AT_ONCE);
    for (const line of shown) {
      for (let done = false; !done; ) {
        const before = tested.length + lookedFor;
        ({ isDone: done } = search.goOn(line, line.message));
        expect(tested.length + lookedFor - before).toBeLessThanOrEqual(AT_ONCE);
      }
    }
    expect(tested).toHaveLength(60);
    expect(shown.map((line) => isDim(row(search, line)))).toEqual(shown.map((_, index) => index % 2 === 1));
  });

  it('are marked hit by hit, and none is dimmed before its result is known', () => {
    const search = new LineSearch(filter, true);
    const line = aLine(1, 'hit '.repeat(10).trim());
    const text = line.message;
    let marked = 0;
    for (
      let { isDone, isFound, hits } = search.answer(line, text);
      ;
      { isDone, isFound, hits } = search.goOn(line, text)
    ) {
      expect(isFound).not.toBe(false);
      expect(hits.length).toBeGreaterThanOrEqual(marked);
      expect(hits.length - marked).toBeLessThanOrEqual(AT_ONCE);
      marked = hits.length;
      if (isDone) break;
    }
    expect(marked).toBe(10);
    expect(row(search, line).match(/<mark/g)).toHaveLength(10);
  });

  it('are not dimmed when all shown lines match', () => {
    const search = new LineSearch(filter, false);
    expect(isDim(row(search, aLine(1, 'nothing')))).toBe(false);
    expect(tested).toEqual([]);
  });
});
