import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { attachmentAgent, chooseFiles, textFile } from '../support/agent-pages';
import { hashOf, PNG } from '../support/attachments';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

/** Pastes a PNG file into the composer. */
const paste = (page: Page, name: string) =>
  page.getByRole('textbox', { name: /^Message to/ }).evaluate(
    (field, { bytes, called }) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(bytes)], called, { type: 'image/png' }));
      field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    },
    { bytes: [...PNG], called: name },
  );

/** Drops a file on the composer. @returns the events left to the browser, which would open the file */
const drop = (page: Page, name: string, text: string) =>
  page.getByRole('form', { name: 'Composer' }).evaluate(
    (form, file) => {
      const data = new DataTransfer();
      data.items.add(new File([file.text], file.name, { type: '' }));
      return ['dragover', 'drop'].filter((type) =>
        form.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true })),
      );
    },
    { name, text },
  );

test('files are attached by choosing, pasting and dropping, sent with the message, and shown after a reload', async () => {
  const { runner, page, sessionId, composer, attached, close } = await attachmentAgent(site, 'attach-carrier');
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await chooseFiles(page, textFile('build.log', 'It broke.'));
  await paste(page, 'shot.png');
  expect(await drop(page, 'app.ts', 'export {};')).toEqual([]);
  await attached.getByText('app.ts').waitFor();
  await expect.poll(() => attached.getByRole('progressbar').count()).toBe(0);
  // The content policy permits a pasted picture.
  const drawn = () => attached.locator('img').evaluate((image: HTMLImageElement) => image.naturalWidth);
  await expect.poll(drawn).toBe(1);
  // Removing a file by keyboard moves the focus to the composer.
  await attached.getByRole('button', { name: 'Remove “app.ts”' }).focus();
  await page.keyboard.press('Enter');
  await attached.getByText('app.ts').waitFor({ state: 'hidden' });
  expect(await isFocused(composer)).toBe(true);
  await page.reload();
  await live(page);
  await attached.getByText('build.log').waitFor();
  await expect.poll(drawn).toBe(1);
  await composer.fill('Look at these');
  await composer.press('Enter');
  const command = await runner.next('message');
  const log = { hash: hashOf(Buffer.from('It broke.')), name: 'build.log', mediaType: 'text/plain', bytes: 9 };
  const shot = { hash: hashOf(PNG), name: 'shot.png', mediaType: 'image/png', bytes: PNG.byteLength };
  expect(command.body).toMatchObject({ text: 'Look at these', attachments: [log, shot] });
  await attached.waitFor({ state: 'hidden' });
  await runner.acknowledge(command, 'delivered');
  for (const isReloaded of [false, true]) {
    if (isReloaded) {
      await page.reload();
      await live(page);
    }
    const shown = transcriptOf(page).getByRole('list', { name: 'Attachments' });
    const image = shown.getByRole('img', { name: '“shot.png”' });
    // The image loads when it scrolls into view, and again when its message is delivered.
    const widthInSight = () =>
      image.evaluate((element: HTMLImageElement) => {
        element.scrollIntoView({ block: 'nearest' });
        return element.naturalWidth;
      });
    await expect.poll(widthInSight).toBe(1);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      shown.getByRole('link', { name: /build\.log.*9 bytes/ }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('build.log');
    const [opened] = await Promise.all([site.context.waitForEvent('page'), image.click()]);
    await opened.waitForLoadState();
    expect(new URL(opened.url()).pathname).toBe(`/api/v1/attachments/${shot.hash}`);
    await opened.close();
  }
  // The browser's own page around an image has inline styles, which the response's policy refuses.
  const expected = new RegExp(
    `Applying inline style violates.*/attachments/${shot.hash}\\?session=${sessionId}&name=[^)]+\\)$`,
  );
  site.complaints.splice(0, site.complaints.length, ...site.complaints.filter((one) => !expected.test(one)));
  await close();
});
