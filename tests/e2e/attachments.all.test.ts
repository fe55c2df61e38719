import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { attachmentAgent, chooseFiles, imageFile, textFile } from '../support/agent-pages';
import { press } from '../support/press';
import { isFocused, transcriptOf } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

test('a message waits for its uploads, and is not sent when one failed', async () => {
  const { runner, page, composer, attached, close } = await attachmentAgent(site, 'attach-all-waiter');
  let [isAway, letUploadsPass] = [true, () => {}];
  const held = new Promise<void>((resolve) => {
    letUploadsPass = resolve;
  });
  await page.route('**/api/v1/sessions/*/attachments?*', async (route) => {
    if (isAway) return route.abort();
    await held;
    return route.continue();
  });
  await chooseFiles(page, textFile('a.txt', 'a'));
  const alert = attached.getByRole('alert');
  await alert.getByText('The server can’t be reached.').waitFor();
  await composer.fill('Read it');
  await composer.press('Enter');
  await page.getByText('to send the message').waitFor();
  expect(await composer.inputValue()).toBe('Read it');
  isAway = false;
  await attached.getByRole('button', { name: 'Try again: “a.txt”' }).click();
  await composer.press('Enter');
  await page.getByText('The message will be sent when all uploads finish.').waitFor();
  expect(runner.commands).toEqual([]);
  letUploadsPass();
  const command = await runner.next('message');
  expect(command.body).toMatchObject({ text: 'Read it', attachments: [{ name: 'a.txt' }] });
  expect(await composer.inputValue()).toBe('');
  // The page refuses a file that the agent does not accept before sending it.
  await chooseFiles(page, { name: 'x.zip', mimeType: 'application/zip', buffer: Buffer.from([80, 75, 0, 255]) });
  await alert.getByText(/not text in UTF-8\. Attach one of image\/png/).waitFor();
  await attached.getByRole('button', { name: 'Remove “x.zip”' }).click();
  // A message without text shows the names of its files.
  await chooseFiles(page, imageFile('dot.png'));
  await composer.press('Enter');
  expect((await runner.next('message')).body).toMatchObject({ text: 'dot.png', attachments: [{ name: 'dot.png' }] });
  await close();
  // The browser logs the request that this test aborts, and the one that the server refuses.
  const expected = /net::ERR_FAILED|status of 400/;
  site.complaints.splice(0, site.complaints.length, ...site.complaints.filter((one) => !expected.test(one)));
});

test('a message returns to the composer when the server no longer has its file', async () => {
  const { runner, page, composer, attached, close } = await attachmentAgent(site, 'attach-all-forgetful');
  await chooseFiles(page, textFile('old.txt', 'old'));
  await attached.getByText('old.txt').waitFor();
  await expect.poll(() => attached.getByRole('progressbar').count()).toBe(0);
  // The server's responses a day later.
  const refusal = { error: { code: 'invalid_argument', message: 'Send its bytes first' } };
  await page.route('**/api/v1/sessions/*/messages', (route) => route.fulfill({ status: 400, json: refusal }));
  await page.route('**/api/v1/attachments/*', (route) => route.fulfill({ status: 404, json: refusal }));
  await composer.fill('Read it');
  await composer.press('Enter');
  const shown = transcriptOf(page);
  await shown.getByText('The server no longer has old.txt. Edit the message and attach the files again.').waitFor();
  await press(shown.getByRole('button', { name: 'Edit' }));
  await attached.getByRole('alert').getByText('The server no longer has this file. Attach it again.').waitFor();
  expect([await composer.inputValue(), await isFocused(composer)]).toEqual(['Read it', true]);
  await shown.getByText('Read it').waitFor({ state: 'hidden' });
  await page.unrouteAll();
  await chooseFiles(page, textFile('old.txt', 'old'));
  await attached.getByRole('alert').waitFor({ state: 'hidden' });
  await composer.press('Enter');
  expect((await runner.next('message')).body).toMatchObject({ text: 'Read it', attachments: [{ name: 'old.txt' }] });
  await close();
  // The browser logs the two responses of this test.
  const expected = /status of 40[04]/;
  site.complaints.splice(0, site.complaints.length, ...site.complaints.filter((one) => !expected.test(one)));
});

test.each([360, 1280])('attachments have no axe violation and do not scroll sideways at %i px', async (width) => {
  const { runner, page, composer, attached, close } = await attachmentAgent(site, `attach-all-narrow-${width}`);
  await page.setViewportSize({ width, height: 800 });
  const long = `${'a-very-long-name-of-a-file'.repeat(6)}.log`;
  await chooseFiles(page, imageFile('sent.png'), textFile(long, 'x'), imageFile('other.png'));
  await composer.fill('Look');
  await composer.press('Enter');
  await runner.acknowledge(await runner.next('message'), 'delivered');
  await attached.waitFor({ state: 'hidden' });
  await transcriptOf(page).getByRole('list', { name: 'Attachments' }).waitFor();
  await chooseFiles(page, imageFile('next.png'), textFile(long, 'y'), textFile('empty.txt', ''));
  await attached.getByRole('alert').getByText('The file is empty.').waitFor();
  await expect.poll(() => attached.getByRole('progressbar').count()).toBe(0);
  expect(await violationsInBothThemes(page)).toEqual([]);
  const { scroll, client } = await page.evaluate(() => ({
    scroll: document.documentElement.scrollWidth,
    client: document.documentElement.clientWidth,
  }));
  expect(scroll).toBeLessThanOrEqual(client);
  await close();
  expect(site.complaints).toEqual([]);
});
