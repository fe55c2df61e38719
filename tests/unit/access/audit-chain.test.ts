import type { AuditEntry } from '@interlude/protocol/access';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AUDIT_COLUMNS, appendAuditEntry, auditFromRow, GENESIS_HASH, hashOf } from '@/lib/server/access/audit';
import { checkAudit } from '@/lib/server/access/audit-log';
import { AccessStage } from '../../support/access-stage';

/** A process with access to the file can change entries, but the check detects it. */
let stage: AccessStage;
beforeEach(async () => {
  stage = await AccessStage.start();
  for (const target of ['/a', '/b', '/c']) {
    const who = { actor: 'Ada', actorKind: 'human', role: 'admin', credentialId: 'c1' };
    const what = { action: 'interrupt', agentId: null, sessionId: null, target, digest: '', origin: '' };
    await stage.parts.database.writes.run((transaction) =>
      appendAuditEntry(transaction, { at: 1, ...who, ...what, result: 'done', times: 1 }),
    );
  }
});
afterEach(() => stage.close());

const brokenAt = async () => (await checkAudit(stage.parts.database)).brokenAt;

/** Replaces an entry by another with a valid hash of its own. */
async function replace(number: number, change: Partial<AuditEntry>, before: string): Promise<void> {
  const { database } = stage.parts;
  const { rows } = await database.reader.execute(`SELECT ${AUDIT_COLUMNS} FROM audit WHERE number = ${number}`);
  const { hash: _, ...kept } = auditFromRow(rows[0] as (typeof rows)[number]);
  const entry = { ...kept, ...change };
  await database.writes.run(async (transaction) => {
    await transaction.execute('DROP TRIGGER audit_is_kept');
    const args = [entry.target, hashOf(entry, before), number];
    await transaction.execute({ sql: 'UPDATE audit SET target = ?, hash = ? WHERE number = ?', args });
  });
}

test('detects an entry that no longer matches its hash', async () => {
  expect(await brokenAt()).toBeNull();
  await stage.parts.database.writes.run(async (transaction) => {
    await transaction.execute('DROP TRIGGER audit_is_kept');
    await transaction.execute(`UPDATE audit SET target = '/x' WHERE number = 2`);
  });
  expect(await brokenAt()).toBe(2);
});

test('detects an entry that was replaced together with its hash', async () => {
  await replace(1, { target: '/x' }, GENESIS_HASH);
  expect(await brokenAt()).toBe(2);
});

test('shares one pass between concurrent checks', async () => {
  const read = vi.spyOn(stage.parts.database.reads, 'run');
  const one = await stage.ask('/audit/check');
  const { length } = read.mock.calls;
  expect(await Promise.all([stage.ask('/audit/check'), stage.ask('/audit/check')])).toEqual([one, one]);
  expect(read.mock.calls.length).toBe(2 * length);
});
