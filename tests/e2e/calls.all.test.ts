import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { live } from '../support/transcript-page';
import { message, taskStarted, toolCall } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);
let agent: EventWriter;
beforeAll(async () => {
  agent = new EventWriter(site.server, 'calls-all-editor');
});

const startedCall = (id: string, name: string, args: object): AgUiEvent[] => [
  { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name },
  { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify(args) },
  { type: 'TOOL_CALL_END', toolCallId: id },
];
const request = (name: 'opened' | 'resolved', id: string, value: object): AgUiEvent => ({
  type: 'CUSTOM',
  name: `request:${name}`,
  value: { request_id: id, kind: 'permission', tool_use_id: id, tool_name: 'Bash', ...value },
});

test('a call that waits for a person has neither spinner nor clock, and no buttons after it expired', async () => {
  const command = { command: 'rm -rf build' };
  await agent.write('calls-waits', [
    { type: 'RUN_STARTED', threadId: 's', runId: 'r' },
    ...startedCall('no', 'Bash', command),
    request('opened', 'no', { title: 'Do one', input: command }),
    request('resolved', 'no', { outcome: 'denied' }),
    ...startedCall('yes', 'Bash', { command: 'ls' }),
    request('opened', 'yes', { title: 'Do two', input: { command: 'ls' } }),
  ]);
  const page = await site.open('/sessions/calls-waits');
  await page.getByRole('button', { name: 'Bash rm -rf build denied' }).waitFor();
  const waiting = page.getByRole('button', { name: 'Bash ls waiting for you' });
  expect(await waiting.locator('time, .animate-turn').count()).toBe(0);
  const card = page.getByRole('region', { name: 'Permission: “Do two”' });
  await card.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  // Reopened, it expires in two seconds by an agent's clock an hour behind the server's.
  const at = Date.now() - 3_600_000;
  const again = request('opened', 'yes', { title: 'Do two', input: { command: 'ls' }, expires_at: at + 2_000 });
  await agent.write('calls-waits', [again], { at });
  await card.getByText('1 s left').waitFor();
  await page.getByRole('button', { name: 'Bash ls expired' }).waitFor();
  await page.getByText('Expired unanswered').waitFor();
  expect(await page.getByRole('button', { name: /^(Allow|Deny)/ }).count()).toBe(0);
  await page.getByText('No one answered in time').waitFor();
  // A pinned card shows the expiry, and goes when it is dismissed.
  const tall = Array.from({ length: 60 }, (_, step) => toolCall(`t${step}`, 'Read', { file_path: `${step}.ts` }, 'ok'));
  const words = Array.from({ length: 60 }, (_, step) => message(`m${step}`, `Step ${step}`));
  await agent.write('calls-waits', [
    request('opened', 'third', { title: 'Do three', input: command, expires_at: Date.now() + 8_000 }),
    ...tall.flatMap((call, step) => [...call, ...(words[step] ?? [])]),
  ]);
  const pinned = page.getByRole('region', { name: 'Permission, pinned: “Do three”' });
  await pinned.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  await pinned.getByText('Expired. Nothing was sent.').waitFor();
  expect(await pinned.getByRole('button', { name: /^(Allow|Deny)/ }).count()).toBe(0);
  await press(pinned.getByRole('button', { name: 'Dismiss' }));
  await pinned.waitFor({ state: 'detached' });
  await site.leave(page);
});

test('a call with its request elsewhere has no spinner, and clocks are the server’s when the browser’s is wrong', async () => {
  const ofTask = { subagentRunId: 't1' };
  const command = { command: 'ls' };
  await agent.write('calls-apart', [
    { type: 'RUN_STARTED', threadId: 's', runId: 'r1' },
    ...startedCall('late', 'Bash', command),
    { type: 'RUN_FINISHED', threadId: 's', runId: 'r1' },
    request('opened', 'late', { title: 'Asked once the run is over', input: command }),
    { type: 'RUN_STARTED', threadId: 's', runId: 'r2' },
    ...startedCall('t', 'Agent', { description: 'Look around' }),
    taskStarted('t1', 'Look around', { task_type: 'local_agent', tool_use_id: 't' }),
    ...startedCall('inner', 'Bash', { command: 'ls inner' }).map((event) => ({ ...event, ...ofTask })),
    request('opened', 'inner', { title: 'Asked by the subagent', input: command }),
  ]);
  const page = await site.context.newPage();
  await page.addInitScript(() => {
    const real = Date.now;
    Date.now = () => real() + 5 * 3_600_000;
  });
  await page.goto(`${site.server.url}/sessions/calls-apart`);
  await live(page);
  await page.getByRole('button', { name: 'Steps' }).click();
  for (const name of ['Bash ls waiting for you', 'Bash ls inner waiting for you']) {
    const call = page.getByRole('button', { name });
    await call.waitFor();
    expect(await call.locator('time, .animate-turn').count()).toBe(0);
  }
  const pinned = page.getByRole('region', { name: 'Permission: “Asked by the subagent”' });
  expect(await pinned.locator('time').allTextContents()).toEqual([expect.stringMatching(/^\d+ s$/)]);
  await page.close();
});
