import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { layoutFaults } from '../support/text-boxes';
import { live } from '../support/transcript-page';
import { taskStarted, userTurn, wokenTurn } from '../support/turn-events';
import { type Visit, visit } from '../support/visit';

const AGENTS = {
  short: 'blue',
  usual: 'agent-checkout-service',
  long: `agent-${'w'.repeat(180)}`,
  hostile: 'red\u202Edeerf\u0007\u200B אבגדה '.repeat(5),
};
/** Less of a name, and nobody knows whose row it is. */
const READABLE_PX = 56;
/** All clocks show their longest words: most of a year has gone by. */
const LATER_MS = 300 * 86_400_000;

let it: Visit;
beforeAll(async () => {
  it = await visit();
  for (const [name, agentId] of Object.entries(AGENTS)) {
    const agent = new EventWriter(it.server, agentId);
    const title = name === 'long' ? 'T'.repeat(119) : `Deploy the ${name} service to staging and watch it`;
    const words =
      name === 'hostile' ? '\u202Ewon\u0000 **done**\n\n|a|b|\n'.repeat(20) : `It is ${'very '.repeat(60)}done`;
    await agent.write(`${name}-full`, [
      ...userTurn('r1', title, words),
      ...[1, 2, 3, 4].map((at) => taskStarted(`t${at}`, `Watch ${at} ${'of many '.repeat(12)}`)),
      ...wokenTurn('r2', 't1', words),
      { type: 'RUN_STARTED', threadId: 's', runId: 'r3', metadata: { interlude: { turn: 'between-run' } } },
    ]);
    await agent.failHook('Stop', 'exit 3', `${name}-full`);
    await agent.failHook('Stop', 'exit 4', `${name}-full`);
    await agent.lose(`${name}-full`, 1_234);
    await agent.puzzle(`${name}-full`);
    await owe(`${name}-full`, 3);
    await agent.write(`${name}-plain`, userTurn('r1', title, words));
    await agent.write(`${name}-failed`, [
      ...userTurn('r1', title, words),
      { type: 'RUN_STARTED', threadId: 's', runId: 'r2' },
      { type: 'RUN_ERROR', threadId: 's', runId: 'r2', message: `No disk left\n\n${'at '.repeat(80)}` },
    ]);
  }
});
afterAll(async () => {
  expect(it.complaints).toEqual([]);
  await it.close();
});

const SESSION_ROWS = '[data-session-row]';
const AGENT_ROWS = 'main li a[href^="/agents/"]';

describe.each([
  [240, 'light'],
  [300, 'light'],
  [360, 'dark'],
  [480, 'light'],
  [768, 'light'],
  [1024, 'dark'],
  [1440, 'light'],
  [2560, 'light'],
] as const)('at %i px', (width, colorScheme) => {
  test('nothing in the list of sessions is printed over anything else, and whose it is can be read', async () => {
    const page = await open('/', width, colorScheme);
    await shot(page, `sessions-${width}`);
    expect(await layoutFaults(page, SESSION_ROWS)).toEqual([]);
    expect(Math.min(...(await nameWidths(page)))).toBeGreaterThanOrEqual(READABLE_PX);
    await page.close();
  });

  test('nor in the list of agents', async () => {
    const page = await open('/agents', width, colorScheme);
    await page.locator(AGENT_ROWS).first().waitFor();
    await shot(page, `agents-${width}`);
    expect(await layoutFaults(page, AGENT_ROWS)).toEqual([]);
    await page.close();
  });
});

test('nor in the sidebar, nor in the tasks beside a session', async () => {
  const page = await open('/sessions/long-full', 1680, 'light');
  await page.getByRole('complementary', { name: 'Tasks' }).waitFor();
  await shot(page, 'sidebar');
  expect(await layoutFaults(page, SESSION_ROWS)).toEqual([]);
  expect(Math.min(...(await nameWidths(page)))).toBeGreaterThanOrEqual(READABLE_PX);
  expect(await layoutFaults(page, 'aside[aria-label="Tasks"] li')).toEqual([]);
  await page.close();
});

async function open(path: string, width: number, colorScheme: 'light' | 'dark'): Promise<Page> {
  const page = await it.context.newPage();
  await page.clock.setFixedTime(Date.now() + LATER_MS);
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme });
  await page.goto(`${it.server.url}${path}`);
  await live(page);
  return page;
}

/** How much is seen of the agent's name in each row that is shown; all of one that is shorter counts as enough. */
function nameWidths(page: Page): Promise<number[]> {
  return page.locator('[data-session-row] [data-agent-name]').evaluateAll(
    (names, enough) =>
      names.map((name) => {
        const isWhole = name.scrollWidth <= name.clientWidth + 1;
        return isWhole ? Math.max(enough, name.clientWidth) : name.clientWidth;
      }),
    READABLE_PX,
  );
}

async function owe(sessionId: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const response = await fetch(`${it.server.url}/api/v1/sessions/${sessionId}/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${it.server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: `Are you there? ${at}`, clientId: `${sessionId}-${at}` }),
    });
    if (!response.ok) throw new Error(await response.text());
  }
}

async function shot(page: Page, name: string): Promise<void> {
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
}
