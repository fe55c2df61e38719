import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attachmentStage, PROMPT, poll } from '../support/attachment-stage';
import { hashOf, PNG } from '../support/attachments';
import { LocalDashboard } from '../support/local-dashboard';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

describe('an attachment', () => {
  test('reaches the agent once when the runner is killed right after the prompt', async () => {
    const { open, start, kill, prompts, asked, fetches, isThere, send, delivery } = await attachmentStage(
      dashboard,
      'late',
    );
    await open();
    start();
    await isThere();
    await send();
    await poll(prompts).toHaveLength(1);
    await kill();
    start();
    // The kill may precede the turn's start on disk: a message counts as seen once its turn has started.
    await poll(async () => /^(delivered|seen)$/.test(String(await delivery()))).toBe(true);
    await poll(() => asked.filter((path) => path.includes('/ack')).length).toBeGreaterThan(0);
    expect([await prompts(), fetches()]).toEqual([[PROMPT], 1]);
  });

  test('is fetched again when the download is interrupted', async () => {
    const { open, start, prompts, isThere, send } = await attachmentStage(dashboard, 'cut');
    await open();
    start();
    await isThere();
    let cut = 0;
    dashboard.cutsOff = (path) => {
      if (!path.startsWith(`/api/v1/attachments/${hashOf(PNG)}`) || cut >= 2) return false;
      cut += 1;
      return true;
    };
    await send();
    await poll(prompts).toEqual([PROMPT]);
    expect(cut).toBe(2);
  });

  test('reaches the agent through the next runner when one was stopped before the download', async () => {
    const { open, start, stop, prompts, isThere, send, delivery } = await attachmentStage(dashboard, 'stopped');
    await open();
    start();
    await isThere();
    let cut = 0;
    dashboard.cutsOff = (path) => {
      if (!path.startsWith('/api/v1/attachments/')) return false;
      cut += 1;
      return true;
    };
    await send();
    await poll(() => cut).toBeGreaterThan(0);
    await stop();
    dashboard.cutsOff = () => false;
    expect(await prompts()).toEqual([]);
    start();
    await poll(prompts).toEqual([PROMPT]);
    await poll(delivery).toEqual(['seen']);
  });
});
