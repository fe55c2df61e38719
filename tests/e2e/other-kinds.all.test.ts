import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { SessionDetail } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter } from '../support/event-writer';
import { permissionWithOptions, userTurnEvent, wokenTurnEvent } from '../support/permission-card';
import { press } from '../support/press';
import { live, transcriptOf } from '../support/transcript-page';
import { message, taskEnded, taskStarted, toolCall } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';
import { requestResolved, WireRunner } from '../support/wire-runner';

const site = perFile(visitOwn);
let agent: EventWriter;
let runner: WireRunner;

const STATUS = {
  kind: 'acp',
  takes: ['message', 'interrupt', 'session.end', 'task.stop', 'task.wake', 'wake-rule.set', 'permission.decision'],
  mode: 'Accept edits',
  model: 'gpt-5-codex',
  limits: ['It does not say when a background command ends.', 'It tells no token counts of its subagents.'],
  trouble: 'The agent has not answered for 40 s. If it stays so, start its runner again.',
  commands: [
    { name: 'compact', description: 'Shortens the conversation so far' },
    { name: 'review', description: 'Reviews what has changed since the last commit' },
    { name: 'reset', description: 'Begins anew' },
  ],
};

const plan = (entries: object[]): AgUiEvent => ({
  type: 'ACTIVITY_SNAPSHOT',
  messageId: 'plan',
  activityType: 'plan',
  content: { entries },
  replace: true,
});

function edited(id: string): AgUiEvent[] {
  const [start, args, end, result] = toolCall(id, 'apply_patch', { files: 2 }, 'Done.') as [
    AgUiEvent,
    AgUiEvent,
    AgUiEvent,
    AgUiEvent,
  ];
  const edits = [
    { path: 'src/limits.ts', before: 'const most = 10;\n', after: 'const most = 16;\nconst label = 200;\n' },
    { path: 'src/new-file.ts', before: '', after: 'export const one = 1;\n' },
  ];
  return [start, args, end, { ...result, metadata: { interlude: { edits } } }];
}

beforeAll(async () => {
  agent = new EventWriter(site.server, 'other');
  for (const session of ['work', 'asks', 'slash', 'ends']) await agent.status(session, STATUS);
  runner = await WireRunner.connect(site.server, 'other');
  await agent.write(
    'work',
    [
      ...message('r1/m', 'Raise the limit and start the tests', 'user'),
      userTurnEvent('RUN_STARTED', 'r1'),
      plan([
        { content: 'Raise the limit', status: 'in_progress' },
        { content: 'Run the tests', status: 'pending' },
      ]),
      ...edited('patch'),
      taskStarted('t1', 'npm test -- --watch=false'),
      plan([
        { content: 'Raise the limit', status: 'completed' },
        { content: 'Run the tests', status: 'in_progress' },
      ]),
      ...message('a1', 'The limit is 16 now. The tests run in the background.'),
      userTurnEvent('RUN_FINISHED', 'r1', { inferred: true }),
      taskEnded('t1', 'completed', { exit_code: 0, summary: '212 tests passed' }),
      wokenTurnEvent('RUN_STARTED', 'r2', 't1'),
      ...message('a2', 'All 212 tests pass.'),
      wokenTurnEvent('RUN_FINISHED', 'r2', 't1'),
      ...message('r3/m', 'Build it in the background', 'user'),
      userTurnEvent('RUN_STARTED', 'r3'),
      taskStarted('t2', 'npm run build'),
      ...message('a3', 'It builds.'),
      userTurnEvent('RUN_FINISHED', 'r3'),
      taskEnded('t2', 'failed', { exit_code: 2 }),
    ],
    { stepMs: 1_500 },
  );
  await agent.write('asks', [
    ...message('q1/m', 'Install it', 'user'),
    userTurnEvent('RUN_STARTED', 'q1'),
    permissionWithOptions('p1', 'npm install left-pad'),
  ]);
  await agent.write('slash', [
    ...message('s1/m', 'Hello', 'user'),
    userTurnEvent('RUN_STARTED', 's1'),
    ...message('sa', 'Hello.'),
    userTurnEvent('RUN_FINISHED', 's1'),
  ]);
});
afterAll(async () => {
  runner?.leave();
});

test('an ended command offers to wake the agent when no turn has its result', async () => {
  const page = await site.open('/sessions/work');
  await live(page);
  const cards = transcriptOf(page).getByRole('group', { name: /^Task / });
  expect(await cards.filter({ hasText: 'npm test' }).getByRole('button', { name: /^Wake/ }).count()).toBe(0);
  const card = cards.filter({ hasText: 'npm run build' });
  await press(card.getByRole('button', { name: 'Wake the agent for “npm run build”' }));
  const command = await runner.next('task.wake');
  expect(command.body).toEqual({ taskId: 't2', description: 'npm run build' });
  await transcriptOf(page).getByText('The agent was asked to wake for a task: npm run build.').waitFor();
  await runner.acknowledge(command, 'failed', 'the agent is busy');
  await card.getByText(/^Could not wake the agent:/).waitFor();
  await press(card.getByRole('button', { name: /^Wake the agent/ }));
  await runner.acknowledge(await runner.next('task.wake'), 'done');
  await agent.write('work', [
    wokenTurnEvent('RUN_STARTED', 'r4', 't2'),
    ...message('a4', 'The build failed.'),
    wokenTurnEvent('RUN_FINISHED', 'r4', 't2'),
  ]);
  await transcriptOf(page)
    .getByRole('article', { name: /woken by Interlude for npm run build/ })
    .waitFor();
  expect(await card.getByRole('button', { name: /^Wake/ }).count()).toBe(0);
  await page.close();
});

test('a wake rule is set in the session’s menu, and remains until the runner refuses it', async () => {
  const page = await site.open('/sessions/work');
  await live(page);
  const ruleOf = async () => (await site.read<SessionDetail>('/sessions/work')).session.wakeRule;
  const menu = page.getByRole('button', { name: 'Manage this session' });
  const control = page.getByRole('switch', { name: 'Wake the agent when a background command ends' });
  await menu.click();
  expect(await control.getAttribute('aria-checked')).toBe('false');
  await control.click();
  await expect.poll(ruleOf).toBe('command-ended');
  const command = await runner.next('wake-rule.set');
  expect(command.body).toEqual({ when: 'command-ended' });
  await runner.acknowledge(command, 'done');
  expect(await control.getAttribute('aria-checked')).toBe('true');
  await page.reload();
  await live(page);
  await menu.click();
  await expect.poll(() => control.getAttribute('aria-checked')).toBe('true');
  await control.click();
  await runner.acknowledge(await runner.next('wake-rule.set'), 'failed', 'it is held open by its flags');
  await expect.poll(ruleOf).toBe(null);
  await transcriptOf(page)
    .getByText(/Wake-ups after background commands could not be turned off \(it is held open by its flags\)/)
    .waitFor();
  await page.close();
});

describe('a permission with the agent’s own options', () => {
  test('sends the pressed option, which the transcript keeps', async () => {
    const page = await site.open('/sessions/asks');
    await live(page);
    const card = transcriptOf(page).getByRole('region', { name: 'Permission: “Run npm install left-pad?”' });
    const names = [
      'Allow: “Yes, this once”',
      'Allow from now on: “Yes, and don’t ask again for npm”',
      'Deny: “No, tell it what to do instead”',
    ];
    for (const name of names) await card.getByRole('button', { name, exact: true }).waitFor();
    expect(await card.getByRole('button', { name: /^(Allow|Deny)$/ }).count()).toBe(0);
    await press(card.getByRole('button', { name: /^Allow from now on: / }));
    const command = await runner.next('permission.decision');
    expect(command.body).toMatchObject({ requestId: 'p1', behavior: 'allow', optionId: 'session' });
    await runner.acknowledge(command, 'done');
    await agent.write('asks', [requestResolved('p1', 'allowed')]);
    await card.getByText('Allow from now on: “Yes, and don’t ask again for npm”').waitFor();
    await page.close();
  });

  test('allows once on the key a and denies on d, in the transcript and in the inbox', async () => {
    await agent.write('asks', [permissionWithOptions('p2', 'npm ci')]);
    const page = await site.open('/sessions/asks');
    await live(page);
    const card = transcriptOf(page).getByRole('region', { name: 'Permission: “Run npm ci?”' });
    const once = card.getByRole('button', { name: 'Yes, this once' });
    await expect.poll(() => once.getAttribute('aria-disabled')).toBe('false');
    await card.focus();
    await page.keyboard.press('d');
    const denied = await runner.next('permission.decision');
    expect(denied.body).toMatchObject({ requestId: 'p2', behavior: 'deny', optionId: 'no' });
    await runner.acknowledge(denied, 'failed', 'try again');
    await page.close();

    const inbox = await site.open('/inbox');
    await live(inbox);
    const row = inbox.locator('[data-inbox-row]').filter({ hasText: 'Run npm ci?' });
    await row
      .getByRole('button', { name: /^(Review|Show)/ })
      .first()
      .click();
    const here = inbox.getByRole('region', { name: 'Permission: “Run npm ci?”' });
    const first = here.getByRole('button', { name: 'Yes, this once' });
    await expect.poll(() => first.getAttribute('aria-disabled')).toBe('false');
    await row.focus();
    await inbox.keyboard.press('a');
    const allowed = await runner.next('permission.decision');
    expect(allowed.body).toMatchObject({ requestId: 'p2', behavior: 'allow', optionId: 'once' });
    await runner.acknowledge(allowed, 'done');
    await agent.write('asks', [requestResolved('p2', 'allowed')]);
    await inbox.close();
  });
});

test('a session ends from its menu once confirmed, and its page says so', async () => {
  await agent.write('ends', [...message('e/m', 'Wait', 'user'), userTurnEvent('RUN_STARTED', 'e')]);
  const page = await site.open('/sessions/ends');
  await live(page);
  const opens = page.getByRole('button', { name: 'Manage this session' });
  const menu = page.getByRole('dialog', { name: 'Manage this session' });
  await opens.click();
  await menu.getByRole('button', { name: 'End session…' }).click();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await menu.getByRole('button', { name: 'End it now' }).click();
  await expect.poll(() => menu.count()).toBe(0);
  await transcriptOf(page).getByText('The session was asked to end.').waitFor();
  await runner.acknowledge(await runner.next('session.end'), 'done');
  await transcriptOf(page).getByText('The runner began to end the session.').waitFor();
  const ended = { type: 'CUSTOM', name: 'session:ended', value: { reason: 'ended from the dashboard' } };
  await agent.write('ends', [ended]);
  await transcriptOf(page)
    .getByText(/ended from the dashboard/)
    .first()
    .waitFor();
  await opens.click();
  await menu.getByRole('button', { name: 'Archive' }).waitFor();
  expect(await menu.getByRole('button', { name: 'End session…' }).count()).toBe(0);
  await page.close();
});

test('the composer offers the agent’s commands after “/”, and keys choose one', async () => {
  const page = await site.open('/sessions/slash');
  await live(page);
  const field = page.getByRole('textbox', { name: 'Message to “other”' });
  await field.pressSequentially('/re');
  const list = page.getByRole('listbox', { name: 'Commands' });
  await expect
    .poll(() => list.getByRole('option').allInnerTexts())
    .toEqual([expect.stringContaining('/review'), expect.stringContaining('/reset')]);
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  expect(await field.inputValue()).toBe('/reset ');
  await expect.poll(() => list.count()).toBe(0);
  await field.fill('/');
  await list.waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(() => list.count()).toBe(0);
  expect(await field.evaluate((element) => element === document.activeElement)).toBe(true);
  await field.fill('');
  await page.close();
});

test('the agent page shows its trouble, mode, commands and limits', async () => {
  const page = await site.open('/agents/other');
  await live(page);
  await page.getByText(/^The agent has not answered for 40 s/).waitFor();
  await page.getByRole('heading', { name: 'Limits' }).waitFor();
  expect(await page.getByRole('listitem').filter({ hasText: 'token counts' }).count()).toBe(1);
  for (const text of ['Accept edits', 'gpt-5-codex']) await page.getByText(text, { exact: true }).first().waitFor();
  await page.getByRole('button', { name: '3 commands' }).click();
  await page.getByText('Shortens the conversation so far').first().waitFor();
  await page.close();
  const session = await site.open('/sessions/slash');
  await live(session);
  await session.getByText(/^The agent has not answered for 40 s/).waitFor();
  await session.getByRole('button', { name: 'Why this state?' }).click();
  await session.getByRole('heading', { name: 'Limits' }).waitFor();
  await session.close();
});

test.each([360, 1280])(
  'pages of another kind of agent have no axe violation and do not scroll sideways at %i px',
  async (width) => {
    await agent.write('asks', [
      ...message('q2/m', 'And now', 'user'),
      userTurnEvent('RUN_STARTED', 'q2'),
      permissionWithOptions(`w${width}`, `ls ${width}`),
    ]);
    for (const path of ['/sessions/work', '/sessions/asks', '/agents/other']) {
      const page = await site.context.newPage();
      await page.emulateMedia({ reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${site.server.url}${path}`);
      await live(page);
      await unfoldAll(page);
      expect(await violationsInBothThemes(page), path).toEqual([]);
      const { scroll, client } = await page.evaluate(() => ({
        scroll: document.documentElement.scrollWidth,
        client: document.documentElement.clientWidth,
      }));
      expect(scroll, path).toBeLessThanOrEqual(client);
      await page.close();
    }
  },
);

async function unfoldAll(page: Page): Promise<void> {
  for (const name of [/^Plan /, /^apply_patch/, '3 commands']) {
    const button = page.getByRole('button', { name }).first();
    if ((await button.count()) > 0) await button.click();
  }
}
