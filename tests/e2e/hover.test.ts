import { beforeAll, test } from 'vitest';
import { expectIconsUnderPointer, writeHovered } from '../support/icons-under-pointer';
import { perFile, visit } from '../support/visit';

const SESSION = 'hover-session';

const it = perFile(visit);
beforeAll(async () => {
  await writeHovered(it.server, SESSION);
});

test('controls keep their icons and contrast under the pointer', async () => {
  const page = await it.open(`/sessions/${SESSION}`);
  await page
    .getByRole('button', { name: /^Show in log/ })
    .first()
    .waitFor();
  await expectIconsUnderPointer(page, 'light');
  await it.leave(page);
});
