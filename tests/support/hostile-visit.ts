import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { nameText } from '@/components/ui/verbatim';
import { EventWriter } from './event-writer';
import { live, transcriptOf } from './transcript-page';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn, wokenTurn } from './turn-events';
import { type OwnVisit, visitOwn } from './visit';

/** A dashboard with hostile agent texts. */
export interface HostileVisit extends OwnVisit {
  /** Texts that call `harm` or request a listener's URL if a page runs or loads any part. */
  attacks: string[];
  /** Events with the attacks in every field. */
  everywhere(): AgUiEvent[];
  /** Loads a page that records calls of `harm`. */
  loadArmed(path: string): Promise<Page>;
  /** Fails if the page ran an attack, contains an active element or reported an error. */
  nothingActed(page: Page): Promise<void>;
}

export async function visitHostile(): Promise<HostileVisit> {
  const reached: string[] = [];
  const listener = createServer((request, response) => {
    reached.push(request.url ?? '');
    response.end();
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const attacks = attacksOn(`http://127.0.0.1:${(listener.address() as AddressInfo).port}`);
  const site = await visitOwn();
  return {
    ...site,
    attacks,
    everywhere: () => everywhere(attacks),
    async loadArmed(path) {
      const page = await site.context.newPage();
      await page.addInitScript(() => {
        Object.assign(window, { harm: () => Object.assign(window, { harmed: true }) });
      });
      await page.goto(`${site.server.url}${path}`);
      return page;
    },
    async nothingActed(page) {
      expect(await page.evaluate(() => 'harmed' in window)).toBe(false);
      expect(await actingElements(page)).toEqual([]);
      expect(site.complaints).toEqual([]);
      expect(reached).toEqual([]);
    },
    async close() {
      await site.close();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** @param evil URL that no page may request */
function attacksOn(evil: string): string[] {
  return [
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
}

function everywhere(attacks: string[]): AgUiEvent[] {
  const text = attacks.join('\n\n');
  const line = attacks.join(' ');
  return [
    { type: 'CUSTOM', name: 'interlude:notice', value: { text: line, tone: 'error' } },
    ...userTurn('r1', line, [
      ...reasoning('thought', text),
      ...message('said', text),
      ...attacks.flatMap((attack, index) => [
        ...message(`said-${index}`, attack),
        ...toolCall(`call-${index}`, attack, { [attack]: attack, command: attack }, attack),
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

/** Expands everything in the transcript. Skips explanations of terms: only one can be open. */
export async function unfoldAll(page: Page): Promise<void> {
  const folded = transcriptOf(page).locator('[aria-expanded=false]:not([aria-haspopup=dialog])');
  // expanding one may reveal further collapsed ones
  await expect
    .poll(() =>
      folded.evaluateAll((buttons) => {
        for (const button of buttons) (button as HTMLElement).click();
        return buttons.length;
      }),
    )
    .toBe(0);
}

/** Returns elements that could load, run or navigate. Agent text must never produce one. */
function actingElements(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found = [...document.querySelectorAll('main *, nav *, [role=log] *')].filter((element) => {
      // the page's own form is outside the transcript
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

/** Prefixes an event's ids. */
export function renamed(prefix: string): (event: AgUiEvent) => AgUiEvent {
  return (event) =>
    JSON.parse(JSON.stringify(event), (key, value) => {
      if (['runId', 'messageId', 'toolCallId', 'task_id', 'request_id', 'subagentRunId'].includes(key))
        return `${prefix}-${value}`;
      if (['taskIds', 'userMessageIds'].includes(key)) return (value as string[]).map((id) => `${prefix}-${id}`);
      return value;
    });
}

/** Writes a session, follows its row, and checks that its page is live, reloads and links to its agent. */
export async function followToSession(site: HostileVisit, page: Page, id: string, mark: string): Promise<void> {
  const agent = new EventWriter(site.server, `agent of ${id}`);
  const shown = nameText(`agent of ${id}`);
  await agent.write(id, userTurn('r/1', `Question ${mark}`, `Answer ${mark} of its own`));
  await page.getByRole('navigation', { name: 'Sessions' }).getByPlaceholder('Search').fill(`agent of ${id}`);
  await page.getByRole('navigation', { name: 'Sessions' }).getByRole('link').filter({ hasText: shown }).first().click();
  await transcriptOf(page).getByText(`Answer ${mark} of its own`).waitFor();
  await page.waitForFunction((title) => document.title.startsWith(title), `Question ${mark}`);
  expect(new URL(page.url()).pathname).toBe(`/sessions/${encodeURIComponent(id)}`);
  await live(page);
  await agent.write(id, userTurn('r/2', 'And now?', 'Still live'));
  await transcriptOf(page).getByText('Still live').waitFor();
  await page.goto(`${page.url()}#${encodeURIComponent('turn-r/1')}`);
  await page.reload();
  await transcriptOf(page).getByText('Still live').waitFor();
  await page.getByRole('link', { name: shown, exact: true }).click();
  await page.getByRole('heading', { name: shown, level: 1 }).waitFor();
  await site.nothingActed(page);
}
