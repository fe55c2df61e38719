import { MAX_ID_LENGTH, MAX_NAMED, MAX_TURN_TEXT } from '@interlude/protocol/limits';
import { positionToNumber } from '@interlude/protocol/position';
import { EVERY_LINE } from '@interlude/protocol/projections/log-filter';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readFirstLog } from '@/app/(console)/agents/[agentId]/logs/read-first-log';
import { unscoped } from '@/lib/server/access/request-context';
import { AGENTS_GROUP, readAgents } from '@/lib/server/queries/read-agents';
import { readLogLines } from '@/lib/server/queries/read-logs';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { cursorOf, type ListCursor } from '@/lib/server/queries/search-pages';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';
import { taskEnded, taskStarted } from '../../support/turn-events';

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget();
});
afterEach(() => target.close());

const MEGABYTE = 1_000_000;
const longIds = () => Array.from({ length: MAX_NAMED }, (_, index) => `${index}-`.padEnd(MAX_ID_LENGTH, 'u'));
const sizeOf = (value: unknown) => JSON.stringify(value).length;

test('cuts a page of agents with large statuses, and continues on the next', async () => {
  const ids = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'];
  for (const [index, agentId] of ids.entries()) {
    const status = { what: 'x'.repeat(index === 0 ? 10 : MEGABYTE) };
    await ingest(target, [{ seq: index + 1, kind: 'status', agentId, occurredAt: 1, status }]);
  }
  const found: string[] = [];
  let after: ListCursor | null = null;
  for (let pages = 0; pages < 10; pages += 1) {
    const page = await readAgents(unscoped(target.database), { after, limit: 100 });
    expect(page.agents.length).toBeLessThanOrEqual(4);
    expect(page.count).toBe(ids.length);
    found.push(...page.agents.map(({ id }) => id));
    if (page.next === null) break;
    after = cursorOf(page.next, [AGENTS_GROUP]);
  }
  expect(found).toEqual(ids);
});

test('cuts a page of turns with large headers, and continues on the next', async () => {
  const turns = Array.from({ length: 24 }, (_, index) => `r${index}`);
  for (const [index, runId] of turns.entries()) {
    const metadata = { interlude: { userMessageIds: longIds() } };
    await ingest(target, [
      record(2 * index + 1, { event: { type: 'RUN_STARTED', runId, metadata } }),
      record(2 * index + 2, { event: { type: 'RUN_FINISHED', runId } }),
    ]);
  }
  const found: string[] = [];
  for (let before: string | null = null, hasMore = true; hasMore; ) {
    const page = await readTranscript(unscoped(target.database), 's1', { before, limit: 200 });
    if (page === null) throw new Error('no such session');
    expect(sizeOf(page.turns)).toBeLessThan(MAX_TURN_TEXT + 600_000);
    found.unshift(...page.turns.map(({ id }) => id));
    before = page.turns[0]?.id ?? null;
    hasMore = page.hasMore;
  }
  expect(found).toEqual(turns);
});

test('limits a session’s tasks, and lists named and running ones before the newest', async () => {
  const started = Array.from({ length: 150 }, (_, index) => taskStarted(`t${index}`, 'Build'));
  const ended = Array.from({ length: 149 }, (_, index) => taskEnded(`t${index + 1}`, 'completed'));
  await ingest(
    target,
    [...started, ...ended].map((event, index) => record(index + 1, { event })),
  );
  const list = await readTasks(unscoped(target.database), 's1', { limit: 100, named: async () => ['t7', 'none'] });
  const newest = Array.from({ length: 98 }, (_, index) => `t${index + 52}`);
  expect(list?.tasks.map(({ id }) => id)).toEqual(['t0', 't7', ...newest]);
  expect(list?.omitted).toBe(50);
});

test('limits the text of a turn’s messages', async () => {
  const metadata = { interlude: { replyTo: longIds() } };
  await ingest(target, [record(1, { event: { type: 'RUN_STARTED', runId: 'r' } })]);
  for (let index = 0; index < 24; index += 1) {
    const event = { type: 'TEXT_MESSAGE_START', messageId: `m${index}`, role: 'assistant', metadata };
    await ingest(target, [record(index + 2, { event })]);
  }
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
  const [turn] = page?.turns ?? [];
  expect(turn?.items.at(-1)).toMatchObject({ id: 'm23' });
  expect(sizeOf(turn)).toBeLessThan(MAX_TURN_TEXT + 600_000);
});

test('limits a log page to one read, at least one line', async () => {
  const log = (message: string) => ({ level: 'info', component: '', message });
  const long = Array.from({ length: 40 }, (_, index) => ({
    seq: index + 1,
    kind: 'log',
    agentId: 'a1',
    occurredAt: index,
    log: log(`${index} ${'x'.repeat(60_000)}`),
  }));
  await ingest(target, long);
  const first = await readFirstLog(unscoped(target.database), 'a1', {});
  expect(first?.page.lines.map(({ line }) => line)).toEqual([36, 37, 38, 39, 40]);
  expect(first?.page).toMatchObject({ hasMore: true, hasNewer: false });
  const next = await readLogLines(unscoped(target.database), 'a1', {
    filter: EVERY_LINE,
    place: { kind: 'before', position: positionToNumber(first?.page.lines[0]?.position ?? '') },
    limit: 500,
  });
  expect(next?.lines.at(-1)?.line).toBe(35);
  expect(sizeOf(next)).toBeLessThan(1.2 * MEGABYTE);
});
