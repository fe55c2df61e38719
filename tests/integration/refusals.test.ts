import type { AuditCheck, AuditEntry, AuditPage, Me } from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { OWNER } from '@/lib/server/access/principal';
import { RefusalCounter } from '@/lib/server/access/refusal-counter';
import { AccessStage, type Headers } from '../support/access-stage';

const WINDOW_MS = 10 * 60_000;

afterEach(() => void vi.restoreAllMocks());

async function stageOf(dataDir?: string): Promise<AccessStage> {
  const stage = await AccessStage.start(dataDir === undefined ? {} : { dataDir });
  onTestFinished(() => stage.close());
  return stage;
}

/** A wall clock that only the test moves. */
function clock(): { passes(ms: number): void } {
  let now = Date.now();
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  return {
    passes(ms) {
      now += ms;
    },
  };
}

/** @returns the entries of this credential, oldest first, after verifying the chain */
async function entriesOf(stage: AccessStage, { id }: { id: string }): Promise<AuditEntry[]> {
  expect((await stage.ask<AuditCheck>('/audit/check')).brokenAt).toBeNull();
  return (await stage.ask<AuditPage>(`/audit?limit=1000&credential=${id}`)).entries.toReversed();
}

async function interrupts(
  stage: AccessStage,
  { id: _, ...as }: Headers & { id: string },
  times: number,
  session = 's',
) {
  const path = (at: number) => `/sessions/${session}${at}/interrupt`;
  await Promise.all(
    Array.from({ length: times }, (_, index) => stage.status(path(index + 1), { method: 'POST', as, body: {} })),
  );
}

const summaries = (entries: AuditEntry[]) => entries.map(({ action, result, times }) => [action, result, times]);

describe('repeated refusals', () => {
  test('a repeated refusal adds one entry at once, and one with the count ten minutes later', async () => {
    const time = clock();
    const stage = await stageOf();
    const viewer = await stage.token({ role: 'viewer' });
    await interrupts(stage, viewer, 300);
    expect(summaries(await entriesOf(stage, viewer))).toEqual([['interrupt', 'forbidden', 1]]);
    time.passes(WINDOW_MS - 1);
    await stage.parts.refusals.flushDue();
    expect(await entriesOf(stage, viewer)).toHaveLength(1);
    const lastAt = Date.now();
    await interrupts(stage, viewer, 1, 'newest-');
    time.passes(1);
    await stage.parts.refusals.flushDue();
    const all = await entriesOf(stage, viewer);
    expect(summaries(all)).toEqual([
      ['interrupt', 'forbidden', 1],
      ['interrupt', 'forbidden', 300],
    ]);
    expect(all[1]).toMatchObject({ at: lastAt, sessionId: 'newest-1', target: '/api/v1/sessions/newest-1/interrupt' });
  });

  test('adds one entry per ten minutes while it continues, and one at once after a pause', async () => {
    const time = clock();
    const stage = await stageOf();
    const viewer = await stage.token({ role: 'viewer' });
    for (let minutes = 0; minutes < 60; minutes += 1) {
      await interrupts(stage, viewer, 5);
      time.passes(60_000);
    }
    await stage.parts.refusals.flushDue();
    const all = await entriesOf(stage, viewer);
    expect(all).toHaveLength(7);
    expect(all.reduce((sum, { times }) => sum + times, 0)).toBe(300);
    time.passes(WINDOW_MS);
    await interrupts(stage, viewer, 1);
    expect((await entriesOf(stage, viewer)).at(-1)).toMatchObject({ number: (all.at(-1)?.number ?? 0) + 1, times: 1 });
  });

  test('is counted per actor, action and reason, while each success has its own entry', async () => {
    const stage = await stageOf();
    const [viewer, other] = [await stage.token({ role: 'viewer' }), await stage.token({ role: 'viewer' })];
    const operator = await stage.token({ role: 'operator' });
    await interrupts(stage, viewer, 3);
    await interrupts(stage, other, 3);
    await interrupts(stage, operator, 3);
    for (let times = 0; times < 3; times += 1) await stage.ask('/tokens', { method: 'POST', body: { role: 'viewer' } });
    expect(summaries(await entriesOf(stage, viewer))).toEqual([['interrupt', 'forbidden', 1]]);
    expect(summaries(await entriesOf(stage, other))).toEqual([['interrupt', 'forbidden', 1]]);
    expect(summaries(await entriesOf(stage, operator))).toEqual([['interrupt', 'not_found', 1]]);
    const created = (await entriesOf(stage, { id: 'owner' })).filter(({ action }) => action === 'create token');
    expect(created).toHaveLength(6);
    expect(created.every(({ times }) => times === 1)).toBe(true);
  });

  test('is flushed by the next request after the server exited, and once by two', async () => {
    const time = clock();
    const first = await stageOf();
    const viewer = await first.token({ role: 'viewer' });
    await interrupts(first, viewer, 20);
    time.passes(WINDOW_MS);
    const [second, third] = await Promise.all([stageOf(first.dataDir), stageOf(first.dataDir)]);
    await vi.waitFor(async () => expect(await entriesOf(second, viewer)).toHaveLength(2));
    await third.parts.refusals.flushDue();
    expect(summaries(await entriesOf(third, viewer)).at(-1)).toEqual(['interrupt', 'forbidden', 19]);
    expect(await entriesOf(third, viewer)).toHaveLength(2);
  });

  test('is flushed after the clock was set back', async () => {
    const time = clock();
    const stage = await stageOf();
    const viewer = await stage.token({ role: 'viewer' });
    await interrupts(stage, viewer, 20);
    time.passes(-100 * WINDOW_MS);
    await interrupts(stage, viewer, 1);
    expect(summaries(await entriesOf(stage, viewer)).at(-1)).toEqual(['interrupt', 'forbidden', 19]);
  });

  test('is flushed by a timer that keeps no process alive', async () => {
    const time = clock();
    const stage = await stageOf();
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const windowMs = 321;
    const refusals = new RefusalCounter(stage.parts, windowMs);
    onTestFinished(() => refusals.close());
    const act = { principal: OWNER, action: 'interrupt', agentId: null, sessionId: null };
    const forbidden = new AppError('forbidden', 'Not for you.');
    for (const target of ['/a', '/b', '/c'])
      await refusals.record({ ...act, target, digest: '', origin: '' }, forbidden);
    const mine = async () => (await entriesOf(stage, { id: 'owner' })).map(({ target, times }) => [target, times]);
    expect(await mine()).toEqual([['/a', 1]]);
    time.passes(windowMs);
    await vi.waitUntil(async () => (await mine()).length === 2);
    expect(await mine()).toEqual([
      ['/a', 1],
      ['/c', 2],
    ]);
    const own = timers.mock.results.filter((_, index) => timers.mock.calls[index]?.[1] === windowMs);
    expect(own.length).toBeGreaterThan(0);
    expect(own.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toEqual(own.map(() => false));
  });
});

test('a hostile request neither enlarges an entry nor breaks the chain', async () => {
  const stage = await stageOf();
  const viewer = await stage.token({ role: 'viewer' });
  await interrupts(stage, viewer, 1, `${'x'.repeat(5_000)}`);
  const other = await stage.token({ role: 'viewer' });
  await interrupts(stage, other, 1, 'nul-%00-');
  const [long] = await entriesOf(stage, viewer);
  expect([long?.sessionId?.length, long?.target.length]).toEqual([256, 1_000]);
  expect((await entriesOf(stage, other))[0]?.sessionId).toBe('nul-\uFFFD-1');
});

test('requests to revoke unknown credentials don’t fill the audit', async () => {
  const stage = await stageOf();
  const person = await stage.browser();
  const { credentialId: id } = await stage.ask<Me>('/me', { as: person });
  const before = (await entriesOf(stage, { id })).length;
  for (let times = 0; times < 5; times += 1) {
    expect(await stage.status('/me/sign-ins', { method: 'DELETE', as: person })).toBe(409);
  }
  expect(summaries((await entriesOf(stage, { id })).slice(before))).toEqual([['sign out elsewhere', 'conflict', 1]]);
  await stage.browser();
  expect(await stage.status('/me/sign-ins', { method: 'DELETE', as: person })).toBe(200);
});
