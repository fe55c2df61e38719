import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { expectTableScrolls, writeTables } from '../support/page-checks';
import { transcriptOf } from '../support/transcript-page';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const LINE = 'x1y2 '.repeat(10_000);
const RUN = 'abcdefghij'.repeat(5_000);

const site = perFile(visit);
beforeAll(async () => {
  await writeTables(site.server, 'words-all-tables');
  await new EventWriter(site.server, 'words-lines').write(
    'words-lines',
    userTurn('r1', LINE, [
      ...message('l1', LINE),
      ...message('l2', RUN),
      ...message('l3', `\`\`\`\n${RUN}\n\`\`\``),
      ...message('l4', `A \`${RUN}\` in a line`),
      ...message(
        'l5',
        JSON.stringify({ rows: Array.from({ length: 4_000 }, (_, index) => ({ at: index, ok: true })) }),
      ),
      ...reasoning('l6', LINE),
      ...toolCall('c1', 'Bash', { command: `echo ${RUN}` }, RUN),
      taskStarted('t1', 'Count', { task_type: 'local_agent' }),
      taskEnded('t1', 'completed', { summary: LINE }),
    ]),
  );
});

test.each([
  [1024, 'dark'],
  [1680, 'light'],
] as const)('a wide table scrolls in its own box and breaks no word at %i px, %s', async (width, colorScheme) => {
  const page = await site.open('/sessions/words-all-tables');
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme });
  await expectTableScrolls(page);
  await site.leave(page);
});

test('a line of 50,000 characters is folded in every kind of text', async () => {
  const page = await site.open('/sessions/words-lines');
  const log = transcriptOf(page);
  await log.getByText('Count').first().waitFor();
  for (const name of [/^Thought/, /^Bash/]) await log.getByRole('button', { name }).first().click();
  await log.evaluate((box) => box.scrollTo(0, 0));
  const longest = await log.evaluate((box) =>
    Math.max(...[...box.querySelectorAll('p, pre, code, .verbatim')].map((text) => text.textContent?.length ?? 0)),
  );
  expect(longest).toBeLessThan(10_000);
  await site.leave(page);
});
