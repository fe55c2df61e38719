import { expect, test } from 'vitest';
import { askingAgent, cardOf } from '../support/agent-pages';
import { live } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const it = perFile(visit);

test('request shows every key of its input, live and reloaded', async () => {
  const { page, ask, close } = await askingAgent(it, 'asked-whole');
  await ask('q', JSON.parse('{"command":"ls","__proto__":{"command":"evil"},"nested":{"__proto__":{"a":1}}}'));
  const box = cardOf(page, 'Ask q').getByRole('group', { name: 'Input' });
  await box.waitFor();
  const shown = await box.textContent();
  expect(shown).toContain('evil');
  expect(shown?.match(/__proto__/g)).toHaveLength(2);
  await page.reload();
  await live(page);
  expect(await box.textContent()).toBe(shown);
  await close();
});
