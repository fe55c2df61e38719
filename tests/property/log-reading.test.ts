import { EVERY_LINE } from '@interlude/protocol/projections/log-filter';
import type { LogLine, LogPage } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import { UNFILTERED } from '@/components/logs/log-query';
import { LogStore } from '@/components/logs/log-store';

afterEach(() => vi.unstubAllGlobals());

/** Outcome of one request: number of lines searched in time, or a 503. */
type Fate = number | 'fails';

const log = fc.record({
  /** Matching lines, oldest first. */
  matches: fc.array(fc.boolean(), { maxLength: 150 }),
  fates: fc
    .tuple(
      fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constant('fails' as const)), { maxLength: 5 }),
      fc.integer({ min: 1, max: 40 }),
    )
    .map(([some, last]): Fate[] => [...some, last]),
});

it('an idle search continues to the end of the log, however little each page finds', async () => {
  await fc.assert(
    fc.asyncProperty(log, async ({ matches, fates }) => {
      const lines = matches.map((_, index) => aLine(index + 1));
      const found = lines.filter((_, index) => matches[index]);
      serve(lines, found, fates);
      const store = new LogStore('agent', { ...UNFILTERED, text: 'found' }, EVERY_LINE);
      store.subscribe(() => store.continueSearch());
      await store.open();
      // each failure is shown, and retried on request
      for (let requests = 0; requests <= (lines.length + 1) * fates.length; requests += 1) {
        await vi.waitUntil(() => !store.isLoading(), { interval: 0 });
        if (store.error !== null) {
          expect(store.error.message).toBe('Busy. Wait.');
          store.retry();
        }
        if (!store.window.hasMore && store.position !== null && store.error === null) break;
      }
      expect(store.position).not.toBeNull();
      expect(store.window.hasMore).toBe(false);
      expect([...store.window.lines()]).toEqual(found);
      expect(store.window.lineCount).toBe(found.length);
      store.close();
    }),
    { numRuns: 150 },
  );
});

it('a retry repeats every failed read', async () => {
  const lines = Array.from({ length: 2_000 }, (_, index) => aLine(index + 1));
  const serveAll = () => serve(lines, lines, [Number.POSITIVE_INFINITY]);
  serveAll();
  const store = new LogStore('agent', UNFILTERED, EVERY_LINE);
  await store.open();
  serve(lines, lines, ['fails']);
  await Promise.all([
    store.open({ kind: 'line', position: '100' }),
    store.open({ kind: 'line', position: '1000' }),
    store.openFirst(),
  ]);
  expect(store.error?.message).toBe('Busy. Wait.');
  serveAll();
  store.retry();
  await vi.waitUntil(() => !store.isLoading());
  expect(store.error).toBeNull();
  for (const position of ['1', '100', '1000', '2000']) expect(store.window.indexOf(position)).toBeGreaterThanOrEqual(0);
});

function aLine(number: number): LogLine {
  return { position: String(number), line: number, occurredAt: number, level: 'info', component: 'test', message: '' };
}

/** Responds like a server whose search time ends after some lines. Outcomes repeat cyclically. */
function serve(lines: readonly LogLine[], found: readonly LogLine[], fates: readonly Fate[]): void {
  let requests = 0;
  const position = String(lines.length);
  const extent = { firstLine: 1, lastLine: lines.length, lines: lines.length, bytes: 0 };
  const head = { position, log: extent } as Pick<LogPage, 'position' | 'log'>;
  vi.stubGlobal('fetch', async (url: string) => {
    const { searchParams } = new URL(url, 'http://localhost');
    const fate = fates[requests++ % fates.length] ?? 'fails';
    if (fate === 'fails') {
      return Response.json({ error: { code: 'unavailable', message: 'Busy. Wait.' } }, { status: 503 });
    }
    const limit = Number(searchParams.get('limit'));
    const [after, around] = [searchParams.get('after'), searchParams.get('around')];
    if (after !== null || around !== null) {
      const from = after === null ? Math.max(0, Number(around) - (limit >> 1)) : Number(after);
      const page = found.filter(({ line }) => line > from).slice(0, limit);
      const hasNewer = (page.at(-1)?.line ?? from) < lines.length;
      const hasMore = after === null ? from > 0 : hasNewer;
      return Response.json({ ...head, hasMore, hasNewer, lines: page } satisfies LogPage);
    }
    const before = Number(searchParams.get('before') ?? lines.length + 1);
    const reached = Math.max(0, before - 1 - fate);
    const seen = found.filter(({ line }) => line < before && line > reached);
    return Response.json({
      ...head,
      hasMore: reached > 0 || seen.length > limit,
      hasNewer: before <= lines.length,
      lines: seen.slice(-limit),
      ...(seen.length <= limit && reached > 0 && { searchedTo: String(reached + 1) }),
    } satisfies LogPage);
  });
}
