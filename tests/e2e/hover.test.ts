import { beforeAll, test } from 'vitest';
import { expectHoveredIcons, writeControls } from '../support/page-checks';
import { perFile, visit } from '../support/visit';

const SESSION = 'hover-session';

const site = perFile(visit);
beforeAll(async () => {
  await writeControls(site.server, SESSION);
});

test('controls keep their icons and contrast under the pointer', async () => {
  const page = await site.open(`/sessions/${SESSION}`);
  await page
    .getByRole('button', { name: /^Show in log/ })
    .first()
    .waitFor();
  await expectHoveredIcons(page, 'light');
  await site.leave(page);
});
