import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attachmentStage, PROMPT, poll } from '../support/attachment-stage';
import { hashOf, PNG } from '../support/attachments';
import { LocalDashboard } from '../support/local-dashboard';

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

describe('attachments', () => {
  test('an attachment reaches the agent once when the runner is killed before the prompt, and is fetched once', async () => {
    const { open, start, kill, prompts, kept, fetches, isThere, send, delivery, takes } = await attachmentStage(
      dashboard,
      'early',
    );
    start();
    await isThere();
    await send();
    await poll(kept).toEqual([`${hashOf(PNG)}.png`]);
    await kill();
    expect(await prompts()).toEqual([]);
    start();
    await open();
    await poll(prompts).toEqual([PROMPT]);
    await poll(delivery).toEqual(['seen']);
    await poll(takes).toEqual(['image', 'file']);
    expect(fetches()).toBe(1);
  });
});
