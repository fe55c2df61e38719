import type { AuditCheck, AuditEntry, AuditPage } from '@interlude/protocol/access';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendAuditEntry, hashOf, REMOVAL_ACTION } from '@/lib/server/access/audit';
import { checkAudit } from '@/lib/server/access/audit-log';
import { DAY_MS, RetainedServer } from '../../support/retained-server';

let server: RetainedServer;
beforeEach(async () => {
  server = await RetainedServer.start();
});
afterEach(() => server.close());

const ENV = { INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_AUDIT_RETENTION_DAYS: '400' };
const later = (days: number) => {
  server.now += days * DAY_MS;
};
const actAll = (actions: string[]) =>
  server.target.database.writes.run(async (transaction) => {
    for (const action of actions) {
      await appendAuditEntry(transaction, {
        ...{ at: server.now, actor: 'Ada', actorKind: 'human', role: 'operator', credentialId: 'c', action },
        ...{ agentId: null, sessionId: null, target: '/x', digest: '', origin: '', result: 'done', times: 1 },
      });
    }
  });
const act = (action: string) => actAll([action]);
const actTimes = (times: number, name: string) =>
  actAll(Array.from({ length: times }, (_, index) => `${name} ${index}`));
const check = async () => (await server.ask('GET', '/audit/check')).answer as AuditCheck;
const page = async () => (await server.ask('GET', '/audit?limit=200')).answer as AuditPage;
const shown = async () => (await page()).entries.map(({ number, action }) => `${number} ${action}`).reverse();
const retain = (env: Record<string, string> = ENV) => server.retain(env);

describe('old audit entries', () => {
  test('are removed, an entry reports that, and the chain is verified from there on', async () => {
    for (const action of ['one', 'two', 'three']) await act(action);
    const [third] = (await page()).entries;
    expect(await check()).toMatchObject({ entries: 3, brokenAt: null, removed: null });
    later(300);
    await act('four');
    later(150);
    await retain();
    expect(await shown()).toEqual(['4 four', `5 ${REMOVAL_ACTION}`]);
    const removed = { upTo: 3, hash: third?.hash, at: server.now };
    const { entries, removed: told } = await page();
    expect(told).toEqual(removed);
    expect(entries[0]).toMatchObject({
      actor: 'Interlude',
      actorKind: 'server',
      target: '/audit/3',
      digest: third?.hash,
    });
    expect(await check()).toEqual({ entries: 2, head: entries[0]?.hash, brokenAt: null, removed });
    expect(await server.faults()).toEqual([]);
    const exported = await server.ask('GET', '/audit/export');
    expect(exported.headers.get('x-interlude-audit-removed')).toBe(`3 ${third?.hash}`);
    // the export can be verified, too
    let head = removed.hash ?? '';
    for (const line of exported.answer
      .trim()
      .split('\n')
      .map((text: string) => JSON.parse(text) as AuditEntry)) {
      expect(hashOf(line, head)).toBe(line.hash);
      head = line.hash;
    }
    await act('six');
    expect(await check()).toMatchObject({ entries: 3, brokenAt: null });
  });

  test('stay while they are younger, and without limit if so configured', async () => {
    await act('one');
    later(399);
    await retain();
    later(4_000);
    await retain({ ...ENV, INTERLUDE_AUDIT_RETENTION_DAYS: 'forever' });
    expect(await shown()).toEqual(['1 one']);
    expect((await check()).removed).toBeNull();
  });

  test('are all removed when all are old, and the next entry continues the chain', async () => {
    await actTimes(1_100, 'act');
    later(500);
    await retain();
    expect(await shown()).toEqual([`1101 ${REMOVAL_ACTION}`]);
    expect(await check()).toMatchObject({ entries: 1, brokenAt: null, removed: { upTo: 1_100 } });
    // as if the process was killed after the last slice, with nothing left
    const [last] = (await page()).entries;
    await server.change('DELETE FROM audit');
    await server.change(`UPDATE audit_start SET number = 1101, hash = '${last?.hash}'`);
    await act('next');
    expect(await shown()).toEqual(['1102 next']);
    const [next] = (await page()).entries as [AuditEntry];
    expect(hashOf(next, last?.hash ?? '')).toBe(next.hash);
  });

  test('are removed at most daily, because each removal is an entry', async () => {
    for (let day = 0; day < 6; day += 1) {
      await act(`day ${day}`);
      later(0.4);
    }
    later(399);
    for (let look = 0; look < 60; look += 1) {
      await retain();
      later(0.05);
    }
    const removals = (await shown()).filter((text) => text.includes(REMOVAL_ACTION));
    expect(removals.length).toBeGreaterThan(0);
    expect(removals.length).toBeLessThanOrEqual(3);
    expect(await check()).toMatchObject({ brokenAt: null });
    // an unused server does not write about this forever
    later(500);
    await retain();
    const once = await shown();
    await retain();
    expect(once).toHaveLength(1);
    expect(await shown()).toEqual(once);
  });

  test('that a killed process left are removed by the next sweep', async () => {
    await actTimes(700, 'act');
    later(500);
    await act('young');
    await server.change(`CREATE TRIGGER stuck BEFORE DELETE ON audit WHEN old.number = 600
      BEGIN SELECT RAISE(ABORT, 'stuck'); END`);
    await expect(retain()).rejects.toThrow(/stuck/);
    expect(await check()).toMatchObject({ brokenAt: null, removed: { upTo: 500 } });
    await server.change('DROP TRIGGER stuck');
    await retain();
    expect(await shown()).toEqual(['701 young', `702 ${REMOVAL_ACTION}`]);
    expect(await check()).toMatchObject({ entries: 2, brokenAt: null, removed: { upTo: 700 } });
  });

  test('are removed while the chain is verified, and every verification succeeds', async () => {
    await actTimes(1_300, 'act');
    later(300);
    await actTimes(300, 'young');
    later(150);
    const checks = Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 10));
        return checkAudit(server.target.database);
      }),
    );
    await retain();
    for (const { brokenAt } of await checks) expect(brokenAt).toBeNull();
  });
});

describe('tampering is detected after entries were removed', () => {
  beforeEach(async () => {
    for (const action of ['one', 'two', 'three']) await act(action);
    later(500);
    for (const action of ['four', 'five']) await act(action);
    await retain();
    await act('seven');
    expect(await check()).toMatchObject({ brokenAt: null, removed: { upTo: 3 } });
  });

  test.each([
    ['the first remaining entry is missing', 'DELETE FROM audit WHERE number = 4', 4],
    ['an entry in between is missing', 'DELETE FROM audit WHERE number = 5', 5],
    ['the audit start is missing', 'DELETE FROM audit_start', 1],
    ['the audit start has another hash', `UPDATE audit_start SET hash = 'x'`, 4],
    ['the audit start has another number', 'UPDATE audit_start SET number = 2', 3],
  ])('%s', async (_, sql, brokenAt) => {
    await server.change(sql);
    expect(await check()).toMatchObject({ brokenAt });
  });

  test('tampering is detected when more entries are missing and the chain fits, but no entry reports it', async () => {
    const hash = (await page()).entries.find(({ number }) => number === 6)?.hash;
    await server.change('DELETE FROM audit WHERE number <= 6');
    await server.change(`UPDATE audit_start SET number = 6, hash = '${hash}'`);
    expect(await check()).toMatchObject({ brokenAt: 7 });
  });

  test('tampering is detected when an agent or person imitates a removal entry', async () => {
    await act(REMOVAL_ACTION);
    later(1);
    await retain();
    expect(await check()).toMatchObject({ brokenAt: null, removed: { upTo: 3 } });
  });
});
