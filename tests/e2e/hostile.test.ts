import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { nameText } from '@/components/ui/verbatim';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { EventWriter } from '../support/event-writer';
import { live, transcriptOf } from '../support/transcript-page';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn, wokenTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

let it: OwnVisit;
let listener: Server;
const reached: string[] = [];
/** What agents write is hostile. Whatever of this acted would call `harm`, or reach the listener that nobody may reach. */
let attacks: string[];

beforeAll(async () => {
  listener = createServer((request, response) => {
    reached.push(request.url ?? '');
    response.end();
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const evil = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  attacks = [
    '<script>harm()</script>',
    '<img src=x onerror=harm()>',
    `<img src="${evil}/img">`,
    '<svg/onload=harm()>',
    `<iframe src="${evil}/frame"></iframe><object data="${evil}/object"></object><embed src="${evil}/embed">`,
    `<link rel=stylesheet href="${evil}/style"><style>@import url(${evil}/import)</style>`,
    `<form action="${evil}/form"><button autofocus onfocus=harm()>Press</button></form>`,
    `<meta http-equiv=refresh content="0;url=${evil}/refresh"><base href="${evil}/">`,
    '<a href="javascript:harm()" id=location name=nodeType>link</a>',
    '[link](javascript:harm())',
    '[link](java\tscript:harm())',
    '[link](&#106;avascript:harm())',
    '[link](JaVaScRiPt&colon;harm())',
    '[link](data:text/html,<script>harm()</script>)',
    '[link](vbscript:harm())',
    '<javascript:harm()>',
    '[by reference]\n\n[by reference]: javascript:harm()',
    `![picture](${evil}/markdown)`,
    '![picture](javascript:harm())',
    '![picture](data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" onload="harm()"/>)',
    '"><img src=x onerror=harm()>',
    '```"><img src=x onerror=harm()>\ncode\n```',
    '```html\n<script>harm()</script>\n```',
    `| <img src=x onerror=harm()> | [x](javascript:harm()) |\n| --- | --- |\n| <script>harm()</script> | ![x](${evil}/cell) |`,
    '\x1b]8;;javascript:harm()\x07terminal link\x1b]8;;\x07\x1b]0;title\x07\x1b[2J\x1b[H\x1b[31mred\x1b[0m\x1b[6n',
    '\u0000\u0001\u0007\b\u007f\u009b31m',
    '\u202egnp.exe\u202c \u2066\u2067turned\u2069',
    `{{constructor.constructor("harm()")()}} ${'$'}{harm()} __proto__`,
  ];
  it = await visitOwn();
});
beforeEach(() => {
  it.complaints.length = 0;
});
afterAll(async () => {
  await it.close();
  await new Promise((resolve) => listener.close(resolve));
});

const all = () => attacks.join('\n\n');

function everywhere(): AgUiEvent[] {
  const text = all();
  const line = attacks.join(' ');
  return [
    { type: 'CUSTOM', name: 'interlude:notice', value: { text: line, tone: 'error' } },
    ...userTurn('r1', line, [
      ...reasoning('thought', text),
      ...message('said', text),
      ...attacks.flatMap((attack, at) => [
        ...message(`said-${at}`, attack),
        ...toolCall(`call-${at}`, attack, { [attack]: attack, command: attack }, attack),
      ]),
      ...toolCall('edit', 'Edit', { file_path: line, old_string: text, new_string: text }, text),
      ...toolCall('other', `mcp__${line}__x`, { url: 'javascript:harm()', nested: { deep: [text] } }, text),
      taskStarted('t1', line, { output_file: line, task_type: line }),
      taskStarted('t2', line, { task_type: 'local_agent' }),
      { ...message('sub', text)[0], subagentRunId: 't2' } as AgUiEvent,
      { ...message('sub', text)[1], subagentRunId: 't2' } as AgUiEvent,
      {
        type: 'CUSTOM',
        name: 'request:opened',
        value: { request_id: 'q1', kind: 'permission', title: line, tool_name: line, input: { command: text } },
      },
    ]),
    taskEnded('t1', 'failed', { summary: text, error: text, exit_code: 1 }),
    ...wokenTurn('r2', 't1', text),
    { type: 'RUN_STARTED', threadId: 's', runId: 'r3' },
    { type: 'RUN_ERROR', message: text, code: line },
    { type: 'CUSTOM', name: 'session:ended', value: { reason: line } },
  ];
}

async function nothingActed(page: Page): Promise<void> {
  expect(await page.evaluate(() => 'harmed' in window)).toBe(false);
  expect(await actingElements(page)).toEqual([]);
  expect(it.complaints).toEqual([]);
  expect(reached).toEqual([]);
}

test('whatever an agent says, calls and names, nothing of it acts', async () => {
  const agent = new EventWriter(it.server, attacks[1] as string);
  await agent.write('hostile', everywhere());
  const page = await openArmed('/sessions/hostile');
  await live(page);
  await unfoldAll(page);
  await nothingActed(page);
  // what was written is still to be read
  await transcriptOf(page).getByText('<script>harm()</script>').first().waitFor();
  // the same live, as it comes in
  await agent.write('hostile', everywhere().map(renamed('again')));
  await transcriptOf(page).locator('[data-turn="again-r2"]').waitFor();
  await unfoldAll(page);
  await nothingActed(page);

  for (const path of ['/', '/agents', `/agents/${encodeURIComponent(attacks[1] as string)}`]) {
    await page.goto(`${it.server.url}${path}`);
    await live(page);
    await nothingActed(page);
  }
  await page.close();
});

test('escapes, control characters and marks that turn text around do not reach the page from commands and titles', async () => {
  const trick = 'rm \u202etxt.exe\u202c \x1b[31mred\x1b[0m \x1b]0;owned\x07\u0008\u009b2J';
  await new EventWriter(it.server, 'trickster').write('escapes', [
    ...userTurn('r1', 'Go', toolCall('c1', 'Bash', { command: trick }, trick)),
    { type: 'CUSTOM', name: 'interlude:notice', value: { text: trick } },
  ]);
  const page = await openArmed('/sessions/escapes');
  await live(page);
  await unfoldAll(page);
  expect((await transcriptOf(page).allInnerTexts()).join('\n')).not.toMatch(UNSEEN);
  await transcriptOf(page).getByText('red').first().waitFor();
  await page.close();
});

describe('a session whose id is', () => {
  const ids = [
    'with/slash',
    'with%2Fslash',
    '100%',
    'schön ☃ 🤖 ‮rtl',
    'a?b=c#d&e+f',
    '../../signed-out',
    '<img src=x onerror=harm()>',
    '"quoted\' `ticks` \\back',
    '__proto__',
    'constructor',
  ];
  // one tab goes from one to the next
  let page: Page;
  beforeAll(async () => {
    page = await openArmed('/');
    await live(page);
  });
  afterAll(() => page.close());

  test.each(ids.map((id, at) => [id, at] as const))(
    '%s has a page of its own, live, that its row leads to',
    async (id, at) => {
      const agent = new EventWriter(it.server, `agent of ${id}`);
      const shown = nameText(`agent of ${id}`);
      await agent.write(id, userTurn('r/1', `Question ${at}`, `Answer ${at} of its own`));
      await page.getByRole('navigation', { name: 'Sessions' }).getByPlaceholder('Search').fill(`agent of ${id}`);
      await page
        .getByRole('navigation', { name: 'Sessions' })
        .getByRole('link')
        .filter({ hasText: shown })
        .first()
        .click();
      await transcriptOf(page).getByText(`Answer ${at} of its own`).waitFor();
      await page.waitForFunction((title) => document.title.startsWith(title), `Question ${at}`);
      expect(new URL(page.url()).pathname).toBe(`/sessions/${encodeURIComponent(id)}`);
      await live(page);
      await agent.write(id, userTurn('r/2', 'And now?', 'Still live'));
      await transcriptOf(page).getByText('Still live').waitFor();
      await page.goto(`${page.url()}#${encodeURIComponent('turn-r/1')}`);
      await page.reload();
      await transcriptOf(page).getByText('Still live').waitFor();
      await page.getByRole('link', { name: shown, exact: true }).click();
      await page.getByRole('heading', { name: shown, level: 1 }).waitFor();
      await nothingActed(page);
    },
  );
});

test('a line of a megabyte and a table of 5,000 rows leave the page alive', async () => {
  const agent = new EventWriter(it.server, 'flood');
  const table = `| a | b |\n| --- | --- |\n${Array.from({ length: 5_000 }, (_, at) => `| row ${at} | ${at} |`).join('\n')}`;
  const line = 'x'.repeat(950_000);
  await agent.write('flood', [
    ...userTurn('r1', 'Say it', [...message('line', line), ...toolCall('c1', 'Bash', { command: line }, 'done')]),
    ...userTurn('r2', 'Read it', toolCall('c2', 'Read', { file_path: 'big' }, line)),
    ...userTurn('r3', 'List it', table),
  ]);
  const page = await openArmed('/sessions/flood');
  await live(page);
  // its beginning, and that it is no more than that
  await page.getByText('row 299').waitFor();
  await page.getByText('The beginning of 5,000 rows').waitFor();
  await transcriptOf(page).hover();
  await page.keyboard.press('Home');
  await agent.write('flood', userTurn('r4', 'Alive?', 'Alive'));
  await page.keyboard.press('End');
  await transcriptOf(page).getByText('Alive', { exact: true }).waitFor();
  await nothingActed(page);
  await page.close();
});

test('every page has a content policy with a nonce of its own, without inline or evaluated scripts', async () => {
  const nonces = new Set<string>();
  const paths = [
    '/',
    '/',
    '/sessions/hostile',
    '/agents',
    '/agents/flood',
    '/signed-out',
    '/nowhere',
    '/sessions/nowhere',
  ];
  for (const path of paths) {
    const page = await it.context.newPage();
    const response = await page.goto(`${it.server.url}${path}`);
    const policy = (await response?.headerValue('content-security-policy')) ?? '';
    const scripts = /script-src ([^;]*)/.exec(policy)?.[1] ?? '';
    expect(scripts).toMatch(/'nonce-[\w+/=]{16,}'/);
    expect(scripts).not.toMatch(/unsafe-inline|unsafe-eval|\*|https?:/);
    expect(policy).toContain("object-src 'none'");
    expect(policy).toContain("base-uri 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    nonces.add(/'nonce-([^']+)'/.exec(scripts)?.[1] ?? '');
    await page.close();
  }
  expect(nonces.size).toBe(paths.length);
});

test('no page but those that are not there has anything on its console', async () => {
  for (const path of ['/', '/sessions/hostile', '/agents', '/agents/flood', '/signed-out']) {
    const page = await it.open(path);
    if (path !== '/signed-out') await live(page);
    await page.close();
  }
  expect(it.complaints).toEqual([]);
  for (const path of ['/sessions/nowhere', '/agents/nowhere', '/nowhere']) {
    const page = await it.open(path);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await page.close();
  }
  expect(it.complaints.filter((one) => !one.includes('404'))).toEqual([]);
});

/** A page on which anything that acts leaves a trace. */
async function openArmed(path: string): Promise<Page> {
  const page = await it.context.newPage();
  await page.addInitScript(() => {
    Object.assign(window, { harm: () => Object.assign(window, { harmed: true }) });
  });
  await page.goto(`${it.server.url}${path}`);
  return page;
}

async function unfoldAll(page: Page): Promise<void> {
  const folded = transcriptOf(page).locator('[aria-expanded=false]');
  await transcriptOf(page).evaluate((log) => {
    for (const button of log.querySelectorAll<HTMLElement>('[aria-expanded=false]')) button.click();
  });
  // opening one may move others out of what is laid out, and bring folded ones in
  await expect
    .poll(() =>
      folded.evaluateAll((buttons) => {
        for (const button of buttons) (button as HTMLElement).click();
        return buttons.length;
      }),
    )
    .toBe(0);
}

/** Elements that could fetch, run or lead anywhere, which nothing an agent writes may become. */
function actingElements(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found = [...document.querySelectorAll('main *, nav *, [role=log] *')].filter((element) => {
      // the one form that is ours stands outside the transcript
      if (element.matches('form[aria-label="Composer"]') && element.closest('[role=log]') === null) return false;
      if (/^(?:img|iframe|object|embed|form|style|link|meta|base|video|audio|source|frame)$/i.test(element.tagName))
        return true;
      if (element.getAttributeNames().some((name) => name.startsWith('on'))) return true;
      const href = element.getAttribute('href') ?? element.getAttribute('src');
      return href !== null && !/^(?:\/|#|https?:\/\/|mailto:)/.test(href);
    });
    return found.map((element) => element.outerHTML.slice(0, 200));
  });
}

/** The same event under other ids. */
function renamed(prefix: string): (event: AgUiEvent) => AgUiEvent {
  return (event) =>
    JSON.parse(JSON.stringify(event), (key, value) => {
      if (['runId', 'messageId', 'toolCallId', 'task_id', 'request_id', 'subagentRunId'].includes(key))
        return `${prefix}-${value}`;
      if (['taskIds', 'userMessageIds'].includes(key)) return (value as string[]).map((id) => `${prefix}-${id}`);
      return value;
    });
}
