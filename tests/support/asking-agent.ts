import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { SETTLE_MS } from '@/components/ui/misclick-guard';
import { agentAtWork } from './agent-at-work';
import { press } from './press';
import { transcriptOf } from './transcript-page';
import type { Visit } from './visit';
import { requestOpened } from './wire-runner';

/** Taller than any window: scrolls what precedes it out of sight. */
export const LONG_TEXT = Array.from({ length: 120 }, (_, at) => `Paragraph ${at}`).join('\n\n');

/** `agentAtWork` with `ask`, which opens a permission request. */
export async function askingAgent(it: Visit, name: string) {
  const met = await agentAtWork(it, name);
  const { agent, sessionId } = met;
  const ask = (id: string, input: unknown, title = `Ask ${id}`) =>
    agent.write(sessionId, [requestOpened({ request_id: id, kind: 'permission', tool_name: 'Bash', title, input })]);
  return { ...met, ask };
}

export function cardOf(page: Page, title: string): Locator {
  return transcriptOf(page).getByRole('region', { name: `Permission: “${title}”` });
}

export function pinnedOf(page: Page): Locator {
  return page.getByRole('group', { name: 'Waiting for you' });
}

export function allowOf(card: Locator): Locator {
  return card.getByRole('button', { name: 'Allow' });
}

/** Asks for permission while something covers the card, which Escape closes, and allows it afterwards. */
export async function expectNotAllowedWhileCovered({
  page,
  ask,
  runner,
}: Pick<Awaited<ReturnType<typeof askingAgent>>, 'page' | 'ask' | 'runner'>): Promise<void> {
  const covered = performance.now();
  await ask('under it', { command: 'echo one two three four five six seven eight nine ten; rm -rf build' });
  const card = page.locator('section[aria-label="Permission: “Ask under it”"]');
  const notice = card.getByText('Review the whole input to enable Allow.');
  await notice.waitFor();
  // Long enough for the input to count as seen, were it not covered.
  await expect.poll(() => performance.now() - covered).toBeGreaterThan(2 * SETTLE_MS);
  expect(await notice.isVisible()).toBe(true);
  await page.keyboard.press('Escape');
  const closed = performance.now();
  await notice.waitFor({ state: 'hidden' });
  await press(allowOf(cardOf(page, 'Ask under it')));
  expect(performance.now() - closed).toBeGreaterThanOrEqual(SETTLE_MS);
  expect((await runner.next('permission.decision')).body).toMatchObject({ behavior: 'allow' });
}
