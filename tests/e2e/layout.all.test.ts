import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectNoFaults, layoutShifts, watchLayoutShifts } from '../support/layout-faults';
import {
  AGENT_ROWS,
  expectSoundLayout,
  LONG_NAME,
  nameWidths,
  openAt,
  PAGES,
  picture,
  READABLE_PX,
  SESSION_ROWS,
  writeLayoutScene,
  writeManySessions,
} from '../support/layout-scene';
import { press } from '../support/press';
import { live } from '../support/transcript-page';
import { perFile, visitOwn } from '../support/visit';

/** A page is loaded at the first width of each range, then resized like a reader's window. */
const RANGES = [
  [360, 768, 1024],
  [1440, 2560],
] as const;

const ROW_WIDTHS = [240, 300, 360, 480, 768, 1024, 1440, 2560] as const;

const site = perFile(visitOwn, /404 \(Not Found\).*\/sessions\/nobody/);
beforeAll(async () => {
  await writeManySessions(site.server);
  await writeLayoutScene(site.server);
});
afterEach(async () => {
  // A failed test leaves its page open, which keeps working beside the others.
  for (const page of site.context.pages().slice(1)) await page.close();
});
afterAll(async () => {
  // The browser logs a missing page.
  site.complaints.splice(0, Infinity, ...site.complaints.filter((one) => !/404 \(Not Found\).*\/nowhere/.test(one)));
});

describe.each(RANGES.map((widths) => [widths.join(', '), widths] as const))('%s px wide', (_, widths) => {
  test.each(Object.keys(PAGES))('%s clips no text, overlaps none and moves none', (name) =>
    expectSoundLayout(site, name, widths),
  );
});

describe('rows of agents with unusual names', () => {
  test('keep their texts apart and the names readable in the list of sessions', async () => {
    const page = await openAt(site, '/', ROW_WIDTHS[0]);
    for (const width of ROW_WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      await expectNoFaults(page, { rows: SESSION_ROWS, message: `${width} px` });
      await expectNoFaults(page, { message: `${width} px` });
      expect(Math.min(...(await nameWidths(page))), `${width} px`).toBeGreaterThanOrEqual(READABLE_PX);
      await picture(page, `rows-of-sessions-${width}`);
    }
  });

  test('keep their texts apart in the list of agents', async () => {
    const page = await openAt(site, '/agents', ROW_WIDTHS[0]);
    await page.locator(AGENT_ROWS).first().waitFor();
    for (const width of ROW_WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      await expectNoFaults(page, { rows: AGENT_ROWS, message: `${width} px` });
      await expectNoFaults(page, { message: `${width} px` });
      await picture(page, `rows-of-agents-${width}`);
    }
  });

  test('keep their texts apart and the names readable beside a session', async () => {
    const page = await openAt(site, '/sessions/long-full', 1680);
    await page.getByRole('complementary', { name: 'Tasks' }).waitFor();
    await expectNoFaults(page, { rows: SESSION_ROWS });
    expect(Math.min(...(await nameWidths(page)))).toBeGreaterThanOrEqual(READABLE_PX);
    await expectNoFaults(page, { rows: 'aside[aria-label="Tasks"] li' });
    await picture(page, 'rows-beside');
  });
});

test.each([
  ['now', '59 s', []],
  ['now', 'requested 59 s ago', []],
  ['59 s', '1 min', []],
  ['requested 59 s ago', 'requested 1 min ago', []],
  ['one', 'several', ['“behind it” moved']],
  ['1 m of cable', 'a lot of it', ['“behind it” moved']],
])(
  'a change from %j to %j counts as a move of the following text, unless it is a clock',
  async (before, after, expected) => {
    const page = await site.context.newPage();
    await watchLayoutShifts(page);
    const body = `<!doctype html><p><span id=it>${before}</span> behind it</p>`;
    await page.route('**/drawn', (route) => route.fulfill({ contentType: 'text/html', body }));
    await page.goto(`${site.server.url}/drawn`);
    await layoutShifts(page);
    await page
      .locator('#it')
      .evaluate((element, text) => Object.assign(element.firstChild as Text, { data: text }), after);
    const moves = (await layoutShifts(page)).filter((move) => move.includes('behind it'));
    expect(
      moves.map((move) => move.replace(/ from .*/, '')),
      moves.join(),
    ).toEqual(expected);
  },
);

test('every empty field has room for its placeholder at 240 px', async () => {
  const page = await site.context.newPage();
  await page.setViewportSize({ width: 240, height: 900 });
  await page.goto(`${site.server.url}/sessions/asks`);
  await live(page);
  const pinned = page.getByRole('group', { name: 'Waiting for you' });
  await press(pinned.getByRole('button', { name: 'Deny with a reason' }));
  await pinned.getByLabel('Reason for denying').waitFor();
  await expectNoFaults(page);
  await picture(page, 'fields-of-a-session-240');
  await page.goto(`${site.server.url}/agents/${LONG_NAME}/logs`);
  await page.getByText('the last line').waitFor();
  await expectNoFaults(page);
  await press(page.getByRole('button', { name: 'Regular expression' }));
  await expectNoFaults(page);
  await picture(page, 'fields-of-a-log-240');
});
