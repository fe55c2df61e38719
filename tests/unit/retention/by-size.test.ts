import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { usedBytes } from '@/db/used-bytes';
import { positionAt } from '@/lib/server/retention/remove-history';
import { RetainedServer } from '../../support/retained-server';
import { message, userTurn } from '../../support/turn-events';

const HOUR_MS = 60 * 60_000;
const MIB = 1024 * 1024;
let server: RetainedServer;
beforeEach(async () => {
  server = await RetainedServer.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await server.close();
});

/** About a megabyte in each of this many sessions, one per hour. */
async function fill(sessions: number): Promise<void> {
  for (let index = 0; index < sessions; index += 1) {
    const text = `${index} `.repeat(20_000);
    for (const part of ['a', 'b', 'c', 'd', 'e'])
      await server.write(userTurn(`r${index}${part}`, 'Go?', text.repeat(4)), `s${index}`);
    server.now += HOUR_MS;
  }
}
const used = async () => (await usedBytes(server.target.database.reader)) ?? 0;
const sessionsWithTurns = async () =>
  (await server.rows(`SELECT DISTINCT session_id AS id FROM turns WHERE kind <> 'none' ORDER BY position`)).map(
    ({ id }) => id,
  );

test('retention by size removes the oldest turns of any session until the database fits', async () => {
  await fill(6);
  const before = await used();
  expect(before).toBeGreaterThan(4 * MIB);
  await server.retain({ INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_RETENTION_MIB: String(before / 2 / MIB) });
  expect(await used()).toBeLessThanOrEqual(before / 2);
  expect(await used()).toBeGreaterThan(before / 4);
  const left = await sessionsWithTurns();
  expect(left.length).toBeGreaterThan(1);
  expect(left).toEqual(Array.from({ length: left.length }, (_, index) => `s${6 - left.length + index}`));
  expect(await server.faults()).toEqual([]);
});

test('retention by size keeps open turns and the last hour, and logs that once', async () => {
  await server.write([{ type: 'RUN_STARTED', threadId: 's', runId: 'open' }, ...message('m', 'Working on it')], 'busy');
  await server.write(userTurn('old', 'Go?', 'Gone.'), 'old');
  server.now += HOUR_MS;
  await server.write(userTurn('new', 'Go?', 'Gone.'), 'new');
  server.now += HOUR_MS - 1;
  const warned = vi.spyOn(console, 'error').mockImplementation(() => {});
  await server.retain({ INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_RETENTION_MIB: '0.001' });
  expect(await sessionsWithTurns()).toEqual(['busy', 'new']);
  expect(warned.mock.calls.flat().join(' ')).toMatch(/INTERLUDE_RETENTION_MIB/);
});

test('retention by size keeps sessions whose state has no limit', async () => {
  const ended = { type: 'CUSTOM', name: CUSTOM.sessionEnded, value: { exitCode: 0 } };
  await server.write([...userTurn('r', 'Go?', 'Gone.'), ended], 'exited');
  await server.write(userTurn('old', 'Go?', 'Gone.'), 'old');
  server.now += HOUR_MS + 1;
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const byState = { INTERLUDE_RETENTION_DAYS_BY_STATE: 'exited=forever' };
  await server.retain({ INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_RETENTION_MIB: '0.001', ...byState });
  expect(await sessionsWithTurns()).toEqual(['exited']);
});

test.each([
  ['no turn open', []],
  ['a turn open since the start', [{ type: 'RUN_STARTED', threadId: 's', runId: 'open' }]],
] satisfies [string, AgUiEvent[]][])(
  'retention by size removes no more than needed, hour after hour, with %s',
  async (_, open) => {
    if (open.length > 0) await server.write(open, 'busy');
    const text = 'word '.repeat(2_000);
    const hour = async (at: number) => {
      for (const part of ['a', 'b', 'c', 'd', 'e'])
        await server.write(userTurn(`r${at}${part}`, 'Go?', text), `s${at}`);
      server.now += HOUR_MS;
    };
    for (let index = 0; index < 12; index += 1) await hour(index);
    const limit = await used();
    for (let index = 12; index < 24; index += 1) {
      await hour(index);
      await server.retain({ INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_RETENTION_MIB: String(limit / MIB) });
      expect(await used()).toBeLessThanOrEqual(limit);
      expect(await used()).toBeGreaterThan(0.8 * limit);
      expect((await sessionsWithTurns()).length).toBeGreaterThan(8);
    }
  },
);

test('positionAt returns the position of the newest earlier event', async () => {
  const { reader } = server.target.database;
  expect(await positionAt(reader, server.now)).toBe(0);
  const received = async () => await server.rows('SELECT position, received_at FROM events ORDER BY position');
  await fill(5);
  const all = await received();
  for (const { received_at: at } of all) {
    for (const time of [Number(at), Number(at) + 1]) {
      const newest = all.filter((event) => Number(event.received_at) < time).at(-1);
      expect(await positionAt(reader, time)).toBe(Number(newest?.position ?? 0));
    }
  }
});
