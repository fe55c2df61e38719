import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { live } from '../support/transcript-page';
import { message, taskEnded, taskStarted, toolCall, userTurn } from '../support/turn-events';
import { type Visit, visit } from '../support/visit';

/** What a reader sees of calls: edits, things to do, and those that wait for a person. */
let it: Visit;
let agent: EventWriter;
beforeAll(async () => {
  it = await visit();
  agent = new EventWriter(it.server, 'editor');
});
afterAll(async () => {
  await it?.close();
});

const begun = (id: string, name: string, args: object): AgUiEvent[] => [
  { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name },
  { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify(args) },
  { type: 'TOOL_CALL_END', toolCallId: id },
];
const request = (name: 'opened' | 'resolved', id: string, value: object): AgUiEvent => ({
  type: 'CUSTOM',
  name: `request:${name}`,
  value: { request_id: id, kind: 'permission', tool_use_id: id, tool_name: 'Bash', ...value },
});

test('an edit unfolds to what it changes, in colour and by signs; a list of things to do to a checklist', async () => {
  const lines = Array.from({ length: 2_000 }, (_, at) => `line ${at} \u202e`);
  const large = { file_path: 'b.ts', old_string: lines.join('\n'), new_string: lines.with(1_000, 'new').join('\n') };
  const todos = [
    { content: 'Read', status: 'completed' },
    { content: 'Run the tests', status: 'in_progress' },
  ];
  const edit = { file_path: 'a.ts', old_string: 'one\ntwo', new_string: 'one\n2\nthree' };
  const work = [
    ...toolCall('t1', 'Edit', edit, 'Updated'),
    ...toolCall('t2', 'Edit', large, 'Updated'),
    ...toolCall('t3', 'TodoWrite', { todos }, 'ok'),
  ];
  await agent.write('edits', userTurn('r', 'Mend it', work));
  const page = await it.open('/sessions/edits');
  await live(page);
  await page.getByRole('button', { name: 'Edit a.ts 2 lines added, 1 removed' }).click();
  await expect.poll(() => page.getByRole('deletion').allInnerTexts()).toEqual(['−\ntwo']);
  expect(await page.getByRole('insertion').allInnerTexts()).toEqual(['+\n2', '+\nthree']);
  const ground = (role: 'deletion' | 'insertion') =>
    page
      .getByRole(role)
      .first()
      .evaluate((line) => getComputedStyle(line).backgroundColor);
  expect(await ground('deletion')).not.toBe(await ground('insertion'));
  await page.getByText('Updated').waitFor();
  // What takes longer to compare is counted once the page has time for it.
  await page.getByRole('button', { name: 'Edit b.ts 1 line added, 1 removed' }).click();
  await page.getByRole('button', { name: '997 unchanged lines' }).click();
  await page.getByText('line 0 ⟨RLO⟩', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^TodoWrite 1 of 2 done: Run the tests/ }).click();
  const items = page.getByRole('list', { name: 'To do' }).getByRole('listitem');
  await expect
    .poll(async () => (await items.allTextContents()).map((text) => text.trim()))
    .toEqual(['done: Read', 'in progress: Run the tests']);
  expect(it.complaints).toEqual([]);
  await it.leave(page);
});

test('a call that waits for a person neither turns nor ticks; when its time is over nothing is offered any more', async () => {
  const command = { command: 'rm -rf build' };
  await agent.write('waits', [
    { type: 'RUN_STARTED', threadId: 's', runId: 'r' },
    ...begun('no', 'Bash', command),
    request('opened', 'no', { title: 'Do one', input: command }),
    request('resolved', 'no', { outcome: 'denied' }),
    ...begun('yes', 'Bash', { command: 'ls' }),
    request('opened', 'yes', { title: 'Do two', input: { command: 'ls' } }),
  ]);
  const page = await it.open('/sessions/waits');
  await page.getByRole('button', { name: 'Bash rm -rf build denied' }).waitFor();
  const waiting = page.getByRole('button', { name: 'Bash ls waiting for you' });
  expect(await waiting.locator('time, .animate-turn').count()).toBe(0);
  const card = page.getByRole('region', { name: 'Permission: Do two' });
  await card.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  // Told again, it waits for two seconds more, by a clock that is an hour behind the server's.
  const at = Date.now() - 3_600_000;
  const again = request('opened', 'yes', { title: 'Do two', input: { command: 'ls' }, expires_at: at + 2_000 });
  await agent.write('waits', [again], { at });
  await card.getByText('0:01 left').waitFor();
  await page.getByRole('button', { name: 'Bash ls expired' }).waitFor();
  await page.getByText('Expired unanswered').waitFor();
  expect(await page.getByRole('button', { name: /^(Allow|Deny)/ }).count()).toBe(0);
  await page.getByText('Nobody answered in time').waitFor();
  // Pinned, as its place is out of sight, it says so and goes when the reader is done with it.
  const tall = Array.from({ length: 60 }, (_, step) => toolCall(`t${step}`, 'Read', { file_path: `${step}.ts` }, 'ok'));
  const words = Array.from({ length: 60 }, (_, step) => message(`m${step}`, `Step ${step}`));
  await agent.write('waits', [
    request('opened', 'third', { title: 'Do three', input: command, expires_at: Date.now() + 8_000 }),
    ...tall.flatMap((call, step) => [...call, ...(words[step] ?? [])]),
  ]);
  const pinned = page.getByRole('region', { name: 'Permission, pinned: Do three' });
  await pinned.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  await pinned.getByText('Expired. Nothing was sent.').waitFor();
  expect(await pinned.getByRole('button', { name: /^(Allow|Deny)/ }).count()).toBe(0);
  await press(pinned.getByRole('button', { name: 'Dismiss' }));
  await pinned.waitFor({ state: 'detached' });
  expect(it.complaints).toEqual([]);
  await it.leave(page);
});

test('a call waits without a spinner where it is asked apart from it; the clocks are the server’s, whatever the browser’s says', async () => {
  const ofTask = { subagentRunId: 't1' };
  const command = { command: 'ls' };
  await agent.write('apart', [
    { type: 'RUN_STARTED', threadId: 's', runId: 'r1' },
    ...begun('late', 'Bash', command),
    { type: 'RUN_FINISHED', threadId: 's', runId: 'r1' },
    request('opened', 'late', { title: 'Asked once the run is over', input: command }),
    { type: 'RUN_STARTED', threadId: 's', runId: 'r2' },
    ...begun('t', 'Agent', { description: 'Look around' }),
    taskStarted('t1', 'Look around', { task_type: 'local_agent', tool_use_id: 't' }),
    ...begun('inner', 'Bash', { command: 'ls inner' }).map((event) => ({ ...event, ...ofTask })),
    request('opened', 'inner', { title: 'Asked by the subagent', input: command }),
  ]);
  const page = await it.context.newPage();
  await page.addInitScript(() => {
    const real = Date.now;
    Date.now = () => real() + 5 * 3_600_000;
  });
  await page.goto(`${it.server.url}/sessions/apart`);
  await live(page);
  await page.getByRole('button', { name: 'What it did' }).click();
  for (const name of ['Bash ls waiting for you', 'Bash ls inner waiting for you']) {
    const call = page.getByRole('button', { name });
    await call.waitFor();
    expect(await call.locator('time, .animate-turn').count()).toBe(0);
  }
  const asked = page.getByRole('region', { name: 'Permission: Asked by the subagent' });
  expect(await asked.locator('time').allTextContents()).toEqual([expect.stringMatching(/^0:\d\d$/)]);
  expect(it.complaints).toEqual([]);
  await page.close();
});

test('how long a task took stays on one line beside a long name', async () => {
  const work = [taskStarted('t', 'a long name '.repeat(20)), taskEnded('t', 'completed', {})];
  await agent.write('long-name', userTurn('r', 'Go', work));
  const page = await it.open('/sessions/long-name');
  // until then the page may still come in pieces
  await live(page);
  const time = page
    .getByRole('group', { name: /^Task/ })
    .getByText(/^\d+\.\d s$/)
    .first();
  expect(await time.evaluate((element) => element.getClientRects().length)).toBe(1);
  expect((await time.boundingBox())?.height).toBeLessThan(24);
  await it.leave(page);
});
