import type { Locator, Page } from 'playwright-core';
import { agentAtWork } from './agent-at-work';
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
  return transcriptOf(page).getByRole('region', { name: `Permission: ${title}` });
}

export function pinnedOf(page: Page): Locator {
  return page.getByRole('group', { name: 'Waiting for you' });
}

export function allowOf(card: Locator): Locator {
  return card.getByRole('button', { name: 'Allow' });
}
