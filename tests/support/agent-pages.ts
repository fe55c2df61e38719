import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { SETTLE_MS } from '@/components/ui/misclick-guard';
import { PNG } from './attachments';
import { EventWriter } from './event-writer';
import { press } from './press';
import { live, transcriptOf } from './transcript-page';
import { userTurn } from './turn-events';
import type { Visit } from './visit';
import { requestOpened, turnOf, WireRunner } from './wire-runner';

/** Taller than any window: scrolls preceding content out of view. */
export const LONG_TEXT = Array.from({ length: 120 }, (_, index) => `Paragraph ${index}`).join('\n\n');

/** `workingAgent` with `ask`, which opens a permission request. */
export async function askingAgent(site: Visit, name: string) {
  const met = await workingAgent(site, name);
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

/** Expects no press to count while a popup covers the permission card, and Allow to work after Escape. */
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
  // Long enough to count as read if it weren't covered.
  await expect.poll(() => performance.now() - covered).toBeGreaterThan(2 * SETTLE_MS);
  expect(await notice.isVisible()).toBe(true);
  await page.keyboard.press('Escape');
  const closed = performance.now();
  await notice.waitFor({ state: 'hidden' });
  await press(allowOf(cardOf(page, 'Ask under it')));
  expect(performance.now() - closed).toBeGreaterThanOrEqual(SETTLE_MS);
  expect((await runner.next('permission.decision')).body).toMatchObject({ behavior: 'allow' });
}

/** Opens a session whose agent is in a turn, with its runner connected. `close` leaves the page. */
export async function workingAgent(site: Visit, name: string) {
  const agent = new EventWriter(site.server, name);
  const sessionId = `${name}-session`;
  await agent.write(sessionId, [...userTurn('first', 'Begin', 'Begun'), turnOf('RUN_STARTED', 'second', [])]);
  const runner = await WireRunner.connect(site.server, name);
  const page = await site.open(`/sessions/${sessionId}`);
  await live(page);
  await page.getByRole('textbox', { name: /^Message to/ }).waitFor();
  const close = async () => {
    await site.leave(page);
    runner.leave();
  };
  return { agent, runner, page, sessionId, close };
}

/** Opens a session whose agent is idle, with its runner connected. `close` leaves the page. */
export async function idleAgent(site: Visit, name: string, status: object | null = null) {
  const agent = new EventWriter(site.server, name);
  const sessionId = `${name}-session`;
  await agent.write(sessionId, userTurn('first', 'Begin', 'Begun'));
  if (status !== null) await agent.status(sessionId, status);
  const runner = await WireRunner.connect(site.server, name);
  const page = await site.open(`/sessions/${sessionId}`);
  await live(page);
  const composer = page.getByRole('textbox', { name: `Message to “${name}”` });
  await composer.waitFor();
  const close = async () => {
    await site.leave(page);
    runner.leave();
  };
  return { agent, runner, page, sessionId, composer, close };
}

interface ChosenFile {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

/** `idleAgent` with image and file support, and the list of attachments. */
export async function attachmentAgent(site: Visit, name: string) {
  const met = await idleAgent(site, name, { kind: 'test', attachments: ['image', 'file'] });
  return { ...met, attached: met.page.getByRole('list', { name: 'Attached' }) };
}

export function chooseFiles(page: Page, ...files: ChosenFile[]): Promise<void> {
  return page.locator('input[type=file]').setInputFiles(files);
}

export function textFile(name: string, text: string): ChosenFile {
  return { name, mimeType: 'text/plain', buffer: Buffer.from(text) };
}

export function imageFile(name: string): ChosenFile {
  return { name, mimeType: 'image/png', buffer: Buffer.from(PNG) };
}
