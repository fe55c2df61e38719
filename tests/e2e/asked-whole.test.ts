import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentAtWork } from '../support/agent-at-work';
import { live, transcriptOf } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';
import { requestOpened } from '../support/wire-runner';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(() => it.close());

async function asked(name: string, request: Record<string, unknown>) {
  const { agent, page, sessionId, close } = await agentAtWork(it, name);
  await agent.write(sessionId, [requestOpened({ request_id: 'q', title: 'Ask', ...request })]);
  return { page, close };
}

test('a long question is shown to its end, and one that is longer than anybody reads is not answered', async () => {
  const question = `${'May I go on? '.repeat(45)}And delete the production database?`;
  const options = [{ label: 'Yes' }, { label: 'No' }];
  const { page, close } = await asked('long-question', {
    ...{ kind: 'question', title: question },
    input: { questions: [{ question, options }] },
  });
  const end = transcriptOf(page).locator('legend:not(.sr-only)', { hasText: 'And delete the production database?' });
  await end.waitFor();
  await close();
  const endless = `${'May I go on? '.repeat(1_000)}And delete the production database?`;
  const longer = await asked('longer-question', {
    ...{ kind: 'question', title: endless },
    input: { questions: [{ question: endless, options }] },
  });
  await transcriptOf(longer.page).getByText('This is too long to be shown whole.').waitFor();
  await transcriptOf(longer.page).getByRole('radio', { name: 'Yes' }).check();
  expect(await transcriptOf(longer.page).getByRole('button', { name: 'Answer', exact: true }).isDisabled()).toBe(true);
  await longer.close();
});

test('an input is shown with every key, live and reloaded', async () => {
  const input = JSON.parse('{"command":"ls","__proto__":{"command":"evil"},"nested":{"__proto__":{"a":1}}}');
  const { page, close } = await asked('proto', { kind: 'permission', tool_name: 'Bash', input });
  const box = transcriptOf(page).getByRole('group', { name: 'Input' });
  await box.waitFor();
  const shown = await box.textContent();
  expect(shown).toContain('evil');
  expect(shown?.match(/__proto__/g)).toHaveLength(2);
  await page.reload();
  await live(page);
  expect(await box.textContent()).toBe(shown);
  await close();
});
