import type { Frame, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { accessibilityViolations, violationsInBothThemes } from '../support/accessibility';
import {
  type EmbeddedSession,
  type EmbedStage,
  embedIn,
  embedStage,
  embedToken,
  newSession,
  permissionAsked,
  showsTranscript,
} from '../support/embed-stage';
import { EventWriter } from '../support/event-writer';
import { LogWriter } from '../support/log-writer';
import { horizontalOverflows, WIDE_MESSAGE } from '../support/page-checks';
import { playRecording } from '../support/play-recording';
import { addMembers, anotherSite, newSignInLink } from '../support/server-data';
import { live } from '../support/transcript-page';
import { taskStarted, userTurn } from '../support/turn-events';
import { type OwnVisit, openProfile, visitOwn } from '../support/visit';
import { WireRunner } from '../support/wire-runner';

/**
 * Every page in both themes, at phone and desktop width: no axe violation and no sideways scrolling. Pages with further
 * states (an open card, a selection) have those in their own files.
 */

const WIDTHS = [360, 1280] as const;

interface Shown {
  path: string;
  /** Resolves once the page shows its content. */
  until?: (page: Page) => Promise<unknown>;
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

const unfold = (list: string) => (page: Page) =>
  page.locator(`ul[aria-label="${list}"]`).evaluate((element) => {
    for (const entry of [...element.querySelectorAll('details')].slice(0, 20)) entry.open = true;
  });

const PAGES: Record<string, Shown> = {
  'the start page': { path: '/' },
  'a session with tasks': { path: '/sessions/demo-test-run' },
  'a session with subagents': { path: '/sessions/demo-research' },
  'a session with a request': { path: '/sessions/asks' },
  'a session with wide content': { path: '/sessions/wide' },
  agents: { path: '/agents' },
  'an agent': { path: '/agents/agent-demo-test-run' },
  'the log of an agent': {
    path: '/agents/asker/logs',
    until: (page) => page.getByText('A line of the log').waitFor(),
  },
  'an empty log': {
    path: '/agents/agent-demo-test-run/logs',
    until: (page) => page.getByText('No log lines yet').waitFor(),
  },
  'the inbox': { path: '/inbox' },
  'the page about words': { path: '/help' },
  'the visitor’s settings page': { path: '/settings' },
  'the appearance page': { path: '/settings/appearance' },
  'the notifications page': { path: '/settings/notifications' },
  'the shortcuts page': { path: '/settings/shortcuts' },
  'the webhook page': {
    path: '/settings/webhook',
    until: (page) => page.getByText(/^No webhook is configured/).waitFor(),
  },
  'the access page': { path: '/settings/access', until: (page) => press(page, 'Create a token') },
  'the members page': {
    path: '/settings/members',
    until: (page) => page.getByRole('table', { name: 'Members' }).waitFor(),
  },
  'the audit page': {
    path: '/settings/audit',
    until: async (page) => {
      await press(page, 'Verify the log');
      await page.getByText('The chain is intact').waitFor();
      await page.locator('summary').first().click();
    },
  },
  'the storage page': { path: '/settings/storage' },
  'the API page with operations': { path: '/settings/api', until: unfold('Acting') },
  'the API page with types': { path: '/settings/api', until: unfold('Types') },
  'the signed-out page after a wrong token': { path: '/signed-out?reason=wrong-token' },
  'the signed-out page after an old link': { path: '/signed-out?reason=old-link' },
  'a missing page': { path: '/nowhere' },
};

describe('the dashboard', () => {
  let site: OwnVisit;
  let removeMembers: () => Promise<void>;
  beforeAll(async () => {
    site = await visitOwn();
    await playRecording(site.server, 'demo/test-run');
    await playRecording(site.server, 'demo/research');
    const wide = 'w'.repeat(200);
    await new EventWriter(site.server, `agent-${wide}`).write('wide', userTurn('r1', `${wide} and on`, WIDE_MESSAGE));
    const asker = new EventWriter(site.server, 'asker');
    await asker.write('asks', [...userTurn('r1', 'Run it', 'May I?'), permissionAsked('q1')]);
    await asker.failHook('Stop', 'exit 3', 'asks');
    await asker.staysInTouch();
    await new LogWriter(site.server, 'asker', 'asker-log').write([
      { message: 'A line of the log' },
      { message: 'It broke', level: 'error' },
    ]);
    removeMembers = await addMembers(site.server);
  });
  afterAll(async () => {
    await removeMembers();
    await site.close();
    expect(site.complaints.filter((one) => !/404 \(Not Found\).*\/nowhere/.test(one))).toEqual([]);
  });

  test.each(Object.keys(PAGES))(
    '%s has no axe violation in light or dark, and does not scroll sideways',
    async (name) => {
      await expectNoBarrier(site, PAGES[name] as Shown);
    },
  );

  test('the sign-in confirmation has no axe violation', async () => {
    const { context, close } = await openProfile();
    onTestFinished(close);
    const page = await context.newPage();
    await page.goto(
      await anotherSite(`<script>location.href = ${JSON.stringify(await newSignInLink(site.server))}</script>`),
    );
    await page.getByRole('heading', { name: 'Sign in?' }).waitFor();
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 });
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const what = colorScheme === 'light' ? 'all' : 'contrast';
        expect([width, colorScheme, await accessibilityViolations(page, what)]).toEqual([width, colorScheme, []]);
      }
      expect(await horizontalOverflows(page)).toEqual([]);
    }
  });

  test('the note of an empty log is below its toolbar at 360 px', async () => {
    const page = await open(site, '/agents/agent-demo-test-run/logs', 360);
    const note = page.getByText('No log lines yet');
    await note.waitFor();
    const [above, below] = [await page.getByRole('toolbar', { name: 'Log' }).boundingBox(), await note.boundingBox()];
    expect(below?.y).toBeGreaterThanOrEqual((above?.y ?? 0) + (above?.height ?? 0));
    await page.close();
  });
});

describe('an empty dashboard', () => {
  let site: OwnVisit;
  beforeAll(async () => {
    site = await visitOwn();
  });
  afterAll(async () => {
    await site.close();
    expect(site.complaints).toEqual([]);
  });

  test.each(['/', '/agents', '/inbox', '/settings/members'])(
    '%s has no axe violation in light or dark, and does not scroll sideways',
    (path) => expectNoBarrier(site, { path }),
  );
});

describe('an embed', () => {
  let site: EmbedStage;
  beforeAll(async () => {
    site = await embedStage();
  });
  afterAll(() => site.close());

  /** A session with a task and a request, and a connected runner. */
  async function busySession(): Promise<EmbeddedSession> {
    const session = await newSession(site);
    await session.agent.status(session.sessionId, { kind: 'test' });
    const runner = await WireRunner.connect(site.server, session.agentId);
    onTestFinished(() => runner.leave());
    await session.agent.write(session.sessionId, [taskStarted('t1', 'Poll the queue'), permissionAsked('ask-1')]);
    return session;
  }

  const shells: Record<string, (session: EmbeddedSession) => Promise<Page>> = {
    'of a session for a viewer': ({ sessionId }) => site.open('crossSite', `session=${sessionId}`),
    'of a session for an operator': ({ sessionId }) => site.open('crossSite', `session=${sessionId}&mayAct=1`),
    'of a log': ({ agentId }) => site.open('crossSite', `agentLogs=${agentId}`),
    'of all sessions': () => site.open('crossSite', 'fleet'),
    'whose tokens are refused': ({ sessionId }) => site.open('crossSite', `session=${sessionId}&rubbish`),
    'whose token is for another console': ({ sessionId }) =>
      site.open('crossSite', `session=${sessionId}&parentOrigin=${site.originOf('sameSite')}`),
    'in a frame within a frame': ({ sessionId }) => site.open('sameSite', `session=${sessionId}`, '/around'),
    'outside a frame': async ({ sessionId }) => {
      const page = await site.context.newPage();
      await page.goto(`${site.origin}/embed/sessions/${sessionId}#token=${await embedToken(site, sessionId)}`);
      return page;
    },
  };
  const shown: Record<string, (frame: Frame) => Promise<unknown>> = {
    'of a session for a viewer': (frame) => showsTranscript(frame),
    'of a session for an operator': (frame) => showsTranscript(frame),
    'of a log': (frame) => frame.getByText('A line of the log').waitFor(),
    'of all sessions': (frame) => frame.locator('[data-session-row]').first().waitFor(),
    'whose tokens are refused': (frame) => frame.getByText('hasn’t provided a valid token').waitFor(),
    'whose token is for another console': (frame) => frame.getByText('The token is for pages from').waitFor(),
    'in a frame within a frame': (frame) => frame.getByText('inside another frame').waitFor(),
    'outside a frame': (frame) => frame.getByText('This page only works in a frame').waitFor(),
  };

  test.each(Object.keys(shells))(
    '%s has no axe violation in light or dark, and does not scroll sideways',
    async (name) => {
      const session = await busySession();
      await new LogWriter(site.server, session.agentId, `${session.agentId}-log`).write([
        { message: 'A line of the log' },
      ]);
      const page = await (shells[name] as (typeof shells)[string])(session);
      const frame = await embedIn(page, site.origin);
      await shown[name]?.(frame);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 700 });
        expect([width, await violationsInBothThemes(frame)]).toEqual([width, []]);
        const [inner, outer] = await frame.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        expect(inner).toBeLessThanOrEqual(Number(outer));
      }
      await page.close();
    },
  );

  test('with a revoked token has no axe violation in light or dark', async () => {
    const { sessionId } = await newSession(site);
    const page = await site.open('crossSite', `session=${sessionId}`);
    const frame = await embedIn(page, site.origin);
    await showsTranscript(frame);
    site.console.refuses = true;
    await site.front.revoke(site.front.tokens.at(-1) ?? '');
    await frame.getByRole('alert').filter({ hasText: 'hasn’t provided a new token' }).waitFor();
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 700 });
      expect([width, await violationsInBothThemes(frame)]).toEqual([width, []]);
    }
    site.console.refuses = false;
    await page.close();
  });
});

async function open(site: OwnVisit, path: string, width: number): Promise<Page> {
  const page = await site.context.newPage();
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize({ width, height: 800 });
  await page.goto(`${site.server.url}${path}`);
  if (!/^\/(?:signed-out|nowhere)/.test(path)) await live(page);
  return page;
}

/** Checks a page at each width: loaded at the first, then resized like a reader's window. */
async function expectNoBarrier(site: OwnVisit, { path, until }: Shown): Promise<void> {
  const page = await open(site, path, WIDTHS[0]);
  await until?.(page);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('html.light').waitFor();
    expect(await horizontalOverflows(page)).toEqual([]);
    if (path.startsWith('/settings')) expect(await wideBoxes(page)).toEqual([]);
    expect(await backgroundLuminance(page)).toBeGreaterThan(0.9);
    expect([width, await violationsInBothThemes(page)]).toEqual([width, []]);
    expect(await backgroundLuminance(page)).toBeLessThan(0.1);
  }
  await page.close();
}

/** Boxes of a settings page whose content is wider than they are, and is no line that scrolls sideways. */
function wideBoxes(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('main, nav')]
      .filter((box) => box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowY !== 'hidden')
      .map((box) => `${box.tagName}: ${box.scrollWidth} in ${box.clientWidth}`),
  );
}

/** 0 is black, 1 is white. */
function backgroundLuminance(page: Page): Promise<number> {
  return page.evaluate(() => {
    const pen = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D;
    pen.fillStyle = getComputedStyle(document.body).backgroundColor;
    pen.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0] = pen.getImageData(0, 0, 1, 1).data;
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
  });
}
