import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashOf, PNG } from '../support/attachments';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';
import { WireRunner } from '../support/wire-runner';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(() => it.close());

/** An agent with one session, whose runner says what it takes, and its page. */
async function meet(name: string, attachments?: string[]) {
  const agent = new EventWriter(it.server, name);
  const sessionId = `${name}-session`;
  await agent.write(sessionId, userTurn('first', 'Begin', 'Begun'));
  await agent.status(sessionId, { kind: 'test', ...(attachments === undefined ? {} : { attachments }) });
  const runner = await WireRunner.connect(it.server, name);
  const page = await it.open(`/sessions/${sessionId}`);
  await live(page);
  const composer = page.getByRole('textbox', { name: `Message to ${name}` });
  return { agent, runner, page, sessionId, composer, attached: page.getByRole('list', { name: 'Attached' }) };
}

const choose = (page: Page, ...files: { name: string; mimeType: string; buffer: Buffer }[]) =>
  page.locator('input[type=file]').setInputFiles(files);
const textFile = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
const imageFile = (name: string) => ({ name, mimeType: 'image/png', buffer: Buffer.from(PNG) });

/** As a screenshot is pasted. */
const paste = (page: Page, name: string) =>
  page.getByRole('textbox', { name: /^Message to/ }).evaluate(
    (field, { bytes, called }) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(bytes)], called, { type: 'image/png' }));
      field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    },
    { bytes: [...PNG], called: name },
  );

/** Dropped on the composer. @returns of its events those that are left to the browser, which opens the file */
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

test('images and files are chosen, pasted and dropped, go with the message, and are shown after a reload', async () => {
  const { runner, page, sessionId, composer, attached } = await meet('carrier', ['image', 'file']);
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await choose(page, textFile('build.log', 'It broke.'));
  await paste(page, 'shot.png');
  await drop(page, 'app.ts', 'export {};');
  await attached.getByText('app.ts').waitFor();
  await expect.poll(() => attached.getByRole('progressbar').count()).toBe(0);
  // The picture is drawn: the page's policy lets it show what it was given itself.
  const drawn = () => attached.locator('img').evaluate((image: HTMLImageElement) => image.naturalWidth);
  await expect.poll(drawn).toBe(1);
  // By keyboard: what is there by mistake is removed, and the focus is where writing goes on.
  await attached.getByRole('button', { name: 'Remove app.ts' }).focus();
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
    const image = shown.getByRole('img', { name: 'shot.png' });
    // It is loaded where it is seen, and drawn anew when its message is delivered.
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
    const [opened] = await Promise.all([it.context.waitForEvent('page'), image.click()]);
    await opened.waitForLoadState();
    expect(new URL(opened.url()).pathname).toBe(`/api/v1/attachments/${shot.hash}`);
    await opened.close();
  }
  // The browser's own page around an image has styles, which data may not bring along.
  const expected = new RegExp(
    `Applying inline style violates.*/attachments/${shot.hash}\\?session=${sessionId}&name=[^)]+\\)$`,
  );
  it.complaints.splice(0, it.complaints.length, ...it.complaints.filter((one) => !expected.test(one)));
  expect(it.complaints).toEqual([]);
  await page.close();
  runner.leave();
});

test('a message waits for what is attached, and is not sent without what failed', async () => {
  const { runner, page, composer, attached } = await meet('waiter', ['image', 'file']);
  let [isAway, letGo] = [true, () => {}];
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  await page.route('**/api/v1/sessions/*/attachments?*', async (route) => {
    if (isAway) return route.abort();
    await held;
    return route.continue();
  });
  await choose(page, textFile('a.txt', 'a'));
  const alert = attached.getByRole('alert');
  await alert.getByText('The server can’t be reached.').waitFor();
  await composer.fill('Read it');
  await composer.press('Enter');
  await page.getByText('the message is not sent without it').waitFor();
  expect(await composer.inputValue()).toBe('Read it');
  isAway = false;
  await attached.getByRole('button', { name: 'Try again: a.txt' }).click();
  await composer.press('Enter');
  await page.getByText('The message is sent once everything is attached.').waitFor();
  expect(runner.commands).toEqual([]);
  letGo();
  const command = await runner.next('message');
  expect(command.body).toMatchObject({ text: 'Read it', attachments: [{ name: 'a.txt' }] });
  expect(await composer.inputValue()).toBe('');
  // What can't be taken says so, and nothing of it is sent.
  await choose(page, { name: 'x.zip', mimeType: 'application/zip', buffer: Buffer.from([80, 75, 0, 255]) });
  await alert.getByText(/no text in UTF-8\. Attach one of image\/png/).waitFor();
  await attached.getByRole('button', { name: 'Remove x.zip' }).click();
  // Without words it is sent as what it carries.
  await choose(page, imageFile('dot.png'));
  await composer.press('Enter');
  expect((await runner.next('message')).body).toMatchObject({ text: 'dot.png', attachments: [{ name: 'dot.png' }] });
  await page.close();
  runner.leave();
  // what the browser says of a request that this test cut off, and of the one that was refused
  const expected = /net::ERR_FAILED|status of 400/;
  it.complaints.splice(0, it.complaints.length, ...it.complaints.filter((one) => !expected.test(one)));
});

test('a message whose file the server has forgotten is edited: its words come back, and say what is missing', async () => {
  const { runner, page, composer, attached } = await meet('forgetful', ['image', 'file']);
  await choose(page, textFile('old.txt', 'old'));
  await attached.getByText('old.txt').waitFor();
  await expect.poll(() => attached.getByRole('progressbar').count()).toBe(0);
  // as a day later
  const refusal = { error: { code: 'invalid_argument', message: 'Send its bytes first' } };
  await page.route('**/api/v1/sessions/*/messages', (route) => route.fulfill({ status: 400, json: refusal }));
  await page.route('**/api/v1/attachments/*', (route) => route.fulfill({ status: 404, json: refusal }));
  await composer.fill('Read it');
  await composer.press('Enter');
  const shown = transcriptOf(page);
  await shown.getByText('The server no longer keeps old.txt: edit the message and attach it again.').waitFor();
  await press(shown.getByRole('button', { name: 'Edit' }));
  await attached.getByRole('alert').getByText('The server no longer keeps it: attach it again.').waitFor();
  expect([await composer.inputValue(), await isFocused(composer)]).toEqual(['Read it', true]);
  await shown.getByText('Read it').waitFor({ state: 'hidden' });
  await page.unrouteAll();
  await choose(page, textFile('old.txt', 'old'));
  await attached.getByRole('alert').waitFor({ state: 'hidden' });
  await composer.press('Enter');
  expect((await runner.next('message')).body).toMatchObject({ text: 'Read it', attachments: [{ name: 'old.txt' }] });
  await page.close();
  runner.leave();
  // what the browser says of the two answers that this test gave
  const expected = /status of 40[04]/;
  it.complaints.splice(0, it.complaints.length, ...it.complaints.filter((one) => !expected.test(one)));
});

test('an agent that takes nothing is offered nothing, and the page says so', async () => {
  const { runner, page, composer, attached } = await meet('terminal');
  const button = page.getByRole('button', { name: 'Attach files' });
  expect(await button.getAttribute('aria-disabled')).toBe('true');
  expect(await button.getAttribute('title')).toBe('Nothing can be attached: this agent takes no images or files');
  await paste(page, 'shot.png');
  expect(await drop(page, 'a.txt', 'a')).toEqual([]);
  // What was attached would go with the next message, or hold it up.
  await composer.fill('Only words');
  await composer.press('Enter');
  const { body } = await runner.next('message');
  expect(body).toMatchObject({ text: 'Only words' });
  expect(body).not.toHaveProperty('attachments');
  expect(await attached.count()).toBe(0);
  await page.close();
  runner.leave();
});

test.each([360, 1280])('at %i px nothing of it is a barrier or scrolls sideways', async (width) => {
  const { runner, page, composer, attached } = await meet(`narrow-${width}`, ['image', 'file']);
  await page.setViewportSize({ width, height: 800 });
  const long = `${'a-very-long-name-of-a-file'.repeat(6)}.log`;
  await choose(page, imageFile('sent.png'), textFile(long, 'x'), imageFile('other.png'));
  await composer.fill('Look');
  await composer.press('Enter');
  await runner.acknowledge(await runner.next('message'), 'delivered');
  await attached.waitFor({ state: 'hidden' });
  await transcriptOf(page).getByRole('list', { name: 'Attachments' }).waitFor();
  await choose(page, imageFile('next.png'), textFile(long, 'y'), textFile('empty.txt', ''));
  await attached.getByRole('alert').getByText('It is empty.').waitFor();
  await expect.poll(() => attached.getByRole('progressbar').count()).toBe(0);
  expect(await barriersInBothThemes(page)).toEqual([]);
  const { scroll, client } = await page.evaluate(() => ({
    scroll: document.documentElement.scrollWidth,
    client: document.documentElement.clientWidth,
  }));
  expect(scroll).toBeLessThanOrEqual(client);
  await page.close();
  runner.leave();
  expect(it.complaints).toEqual([]);
});
