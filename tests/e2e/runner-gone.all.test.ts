import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter } from '../support/event-writer';
import { resolvesWithin } from '../support/timing';
import { taskStarted, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { WireRunner } from '../support/wire-runner';

const site = perFile(visit);

test('a session shows within 30 s that its runner has gone, fits every width, and has no axe violation', async () => {
  const agent = new EventWriter(site.server, 'went');
  const runner = await WireRunner.connect(site.server, 'went');
  await agent.write('went-session', [
    ...userTurn('first', 'Build it and watch the deploy', [taskStarted('t1', 'Watch the deploy')]),
    { type: 'RUN_STARTED', threadId: 's', runId: 'second' },
  ]);
  const page = await site.open('/sessions/went-session');
  await page.getByRole('button', { name: 'Interrupt', exact: true }).waitFor();
  runner.leave();
  const note = page.getByRole('status').filter({ hasText: 'Runner gone' });
  await resolvesWithin(30_000, note.waitFor());
  expect(await violationsInBothThemes(page)).toEqual([]);
  for (const width of [360, 1024, 1680]) {
    await page.setViewportSize({ width, height: 800 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
  }
  await site.leave(page);
});
