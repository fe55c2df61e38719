import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectIconsUnderPointer, writeHovered } from '../support/icons-under-pointer';
import { type Visit, visit } from '../support/visit';

const SESSION = 'hover-session';

let it: Visit;
beforeAll(async () => {
  it = await visit();
  await writeHovered(it.server, SESSION);
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
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
