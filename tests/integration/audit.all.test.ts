import { expect, onTestFinished, test } from 'vitest';
import { checkAudit } from '@/lib/server/access/audit-log';
import { AccessStage, fillAudit } from '../support/access-stage';
import { expectWithin } from '../support/timing';

test('checkAudit verifies 10,000 entries within 5 s without blocking requests', async () => {
  const stage = await AccessStage.start();
  onTestFinished(() => stage.close());
  await fillAudit(stage, 10_000);
  const since = performance.now();
  const checking = checkAudit(stage.parts.database);
  const start = performance.now();
  expect(await stage.status('/sessions')).toBe(200);
  const elapsedMs = performance.now() - start;
  expect(await checking).toMatchObject({ entries: 10_000, brokenAt: null });
  const checkedMs = performance.now() - since;
  expectWithin(checkedMs, 5_000);
  expectWithin(elapsedMs, 1_000);
});
