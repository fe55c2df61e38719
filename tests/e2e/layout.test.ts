import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { EventWriter } from '../support/event-writer';
import { layoutFaults, movesOf, watchMoves } from '../support/layout-faults';
import { LogWriter } from '../support/log-writer';
import { playRecording } from '../support/play-recording';
import { press } from '../support/press';
import { rowFaults } from '../support/row-faults';
import { live, transcriptOf } from '../support/transcript-page';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn, wokenTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

/**
 * Every page at five widths, of content nobody would draw a page for: no text is cut off, printed over or moved. A page
 * is loaded at the first width of each range, and seen at the others as it is when its window is drawn wider.
 */
const RANGES = [
  [360, 768, 1024],
  [1440, 2560],
] as const;

const LONG_NAME = `agent-${'of-the-very-long-name-'.repeat(8)}end`;
const WORD = 'Donaudampfschifffahrtsgesellschaft'.repeat(6);
const SENTENCE = 'The migration of the ledger went through on the third attempt, after the lock was let go. ';

const WIDE = `# ${SENTENCE}

A word of ${WORD}, a path /${'folder/'.repeat(40)}file.ts, and \`${'code'.repeat(60)}\`.

| ${Array.from({ length: 14 }, (_, at) => `column ${at}`).join(' | ')} |
|${' --- |'.repeat(14)}
| ${Array.from({ length: 14 }, (_, at) => `value-${at}-${'x'.repeat(20)}`).join(' | ')} |

- ${SENTENCE.repeat(3)}
  1. ${WORD}

> ${SENTENCE.repeat(4)}

\`\`\`ts
const line = '${'code '.repeat(60)}';
\`\`\`

| שלום | 123 |
|---|---|
| בעברית | כן |

שלום, זה טקסט בעברית עם English words ו-123. مرحبا بالعالم ${'ا'.repeat(80)}
`;

/** What is drawn anew takes a frame or two; what stays wrong is a fault. */
const SETTLED = { interval: 50 };

const ROW_WIDTHS = [240, 300, 360, 480, 768, 1024, 1440, 2560] as const;
const SESSION_ROWS = '[data-session-row]';
const AGENT_ROWS = 'main [role=row] a[href^="/agents/"]';
/** Less of a name, and nobody knows whose row it is. */
const READABLE_PX = 56;

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
  await playRecording(it.server, 'demo/test-run');
  await playRecording(it.server, 'demo/research');
  const agent = new EventWriter(it.server, LONG_NAME);
  await agent.write('wide', [
    ...userTurn('r1', `${WORD} and on. ${SENTENCE.repeat(5)}`, WIDE),
    ...userTurn('r2', SENTENCE, calls()),
  ]);
  await agent.write('busy', busy());
  await agent.failHook(`stop-${WORD}`, `${WORD} ${SENTENCE}`, 'busy');
  await agent.write('asks', asks());
  await agent.staysInTouch();
  // What only starts is lost a minute later, wherever the tests are by then, and all rows below it move.
  await agent.write('parked', userTurn('r1', SENTENCE, SENTENCE));
  await agent.park('parked', [taskEnded(`nobodys-${WORD}`, 'completed', { summary: SENTENCE.repeat(3) })]);
  for (let at = 0; at < 3; at++) await agent.write(`failed-${at}`, failed(at));
  const talker = new EventWriter(it.server, 'large');
  await talker.write('large', large());
  await talker.staysInTouch();
  await manyAgents();
  await fullRows();
  await longLog();
});
afterEach(async () => {
  // What failed leaves its page open, and that one would go on working beside all others.
  for (const page of it.context.pages().slice(1)) await page.close();
});
afterAll(async () => {
  // The browser itself notes the page that is not there.
  it.complaints.splice(0, Infinity, ...it.complaints.filter((one) => !/404 \(Not Found\).*\/nowhere/.test(one)));
  await it.close();
  expect(it.complaints).toEqual([]);
});

interface Shown {
  path: string;
  /** What has to be done or waited for until the page shows what is looked at. */
  until?: (page: Page) => Promise<unknown>;
  /** Holds back what comes by itself a while after the page, and must move nothing. @returns lets it come, and waits for it */
  later?: (page: Page) => Promise<() => Promise<unknown>>;
  /** At this width something takes its room once the browser knows what is in sight. */
  movesAt?: number;
}

const PAGES: Record<string, Shown> = {
  'the start page': { path: '/', later: inboxCount },
  'a session of wide content': {
    path: '/sessions/wide',
    until: (page) => transcriptOf(page).getByRole('table').first().waitFor(),
  },
  'a busy session with its tasks': { path: '/sessions/busy', until: showTasks },
  'a session with its log': { path: '/sessions/busy', until: showLog },
  // On a phone the first of its two requests is out of sight, and pinned above the composer.
  'a session that asks': { path: '/sessions/asks', movesAt: 360 },
  'a session of 300 turns': { path: '/sessions/large' },
  'a session with subagents': { path: '/sessions/demo-research' },
  'a session that is not there': { path: '/sessions/nobody' },
  agents: { path: '/agents' },
  'an agent': { path: `/agents/${LONG_NAME}` },
  'the log of an agent': {
    path: `/agents/${LONG_NAME}/logs`,
    until: (page) => page.getByText('the last line').waitFor(),
  },
  'the signed-out page': { path: '/signed-out?reason=wrong-token' },
  'a page that is not there': { path: '/nowhere' },
};

async function inboxCount(page: Page): Promise<() => Promise<unknown>> {
  let letGo = () => {};
  const isLive = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  await page.route(/\/api\/v1\/inbox\?/, async (route) => {
    await isLive;
    await route.continue();
  });
  return async () => {
    // Only what was seen before can be seen to move.
    await movesOf(page);
    letGo();
    await page.getByRole('link', { name: /^Inbox\s*new: \d/ }).waitFor();
  };
}

describe.each(RANGES.map((widths) => [widths.join(', '), widths] as const))('%s px wide', (_, widths) => {
  test.each(Object.keys(PAGES))('%s cuts off no text, prints none over another and moves none', async (name) => {
    const { path, until, later, movesAt } = PAGES[name] as Shown;
    const page = await it.context.newPage();
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.setViewportSize({ width: widths[0], height: 900 });
    await page.addInitScript(() => localStorage.clear());
    await watchMoves(page);
    const come = await later?.(page);
    await page.goto(`${it.server.url}${path}`);
    if (!/signed-out|nowhere|nobody/.test(path)) await live(page);
    await come?.();
    const moves = movesAt === widths[0] ? [] : await movesOf(page);
    expect(moves, moves.join('\n')).toEqual([]);
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 });
      await until?.(page);
      await expect.poll(() => layoutFaults(page), SETTLED).toEqual([]);
      await picture(page, `${name}-${width}`);
    }
  });
});

describe('in the rows of all kinds of agents', () => {
  test('of sessions, nothing is printed over anything else, and whose it is can be read', async () => {
    const page = await openAt('/', ROW_WIDTHS[0]);
    for (const width of ROW_WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      await expect.poll(() => rowFaults(page, SESSION_ROWS), { ...SETTLED, message: `${width} px` }).toEqual([]);
      await expect.poll(() => layoutFaults(page), { ...SETTLED, message: `${width} px` }).toEqual([]);
      expect(Math.min(...(await nameWidths(page))), `${width} px`).toBeGreaterThanOrEqual(READABLE_PX);
      await picture(page, `rows-of-sessions-${width}`);
    }
  });

  test('nor in those of agents', async () => {
    const page = await openAt('/agents', ROW_WIDTHS[0]);
    await page.locator(AGENT_ROWS).first().waitFor();
    for (const width of ROW_WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      await expect.poll(() => rowFaults(page, AGENT_ROWS), { ...SETTLED, message: `${width} px` }).toEqual([]);
      await expect.poll(() => layoutFaults(page), { ...SETTLED, message: `${width} px` }).toEqual([]);
      await picture(page, `rows-of-agents-${width}`);
    }
  });

  test('nor in the sidebar, nor in the tasks beside a session', async () => {
    const page = await openAt('/sessions/long-full', 1680);
    await page.getByRole('complementary', { name: 'Tasks' }).waitFor();
    await expect.poll(() => rowFaults(page, SESSION_ROWS), SETTLED).toEqual([]);
    expect(Math.min(...(await nameWidths(page)))).toBeGreaterThanOrEqual(READABLE_PX);
    expect(await rowFaults(page, 'aside[aria-label="Tasks"] li')).toEqual([]);
    await picture(page, 'rows-beside');
  });
});

test.each([
  ['now', '59s', []],
  ['59s', '1m', []],
  ['requested 59 s ago', 'requested 1 min ago', []],
  ['one', 'several', ['“behind it” moved']],
  ['1 m of cable', 'a lot of it', ['“behind it” moved']],
])('%j that becomes %j moves what is behind it, unless it is a clock', async (before, after, expected) => {
  const page = await it.context.newPage();
  await watchMoves(page);
  const body = `<!doctype html><p><span id=it>${before}</span> behind it</p>`;
  await page.route('**/drawn', (route) => route.fulfill({ contentType: 'text/html', body }));
  await page.goto(`${it.server.url}/drawn`);
  await movesOf(page);
  await page
    .locator('#it')
    .evaluate((element, text) => Object.assign(element.firstChild as Text, { data: text }), after);
  const moves = (await movesOf(page)).filter((move) => move.includes('behind it'));
  expect(
    moves.map((move) => move.replace(/ from .*/, '')),
    moves.join(),
  ).toEqual(expected);
});

test('the narrowest page has room for what each empty field says', async () => {
  const page = await it.context.newPage();
  await page.setViewportSize({ width: 240, height: 900 });
  await page.goto(`${it.server.url}/sessions/asks`);
  await live(page);
  const pinned = page.getByRole('group', { name: 'Waiting for you' });
  await press(pinned.getByRole('button', { name: 'Deny with a reason' }));
  await pinned.getByLabel('Reason for denying').waitFor();
  await expect.poll(() => layoutFaults(page), SETTLED).toEqual([]);
  await picture(page, 'fields-of-a-session-240');
  await page.goto(`${it.server.url}/agents/${LONG_NAME}/logs`);
  await page.getByText('the last line').waitFor();
  await expect.poll(() => layoutFaults(page), SETTLED).toEqual([]);
  await press(page.getByRole('button', { name: 'Regular expression' }));
  await expect.poll(() => layoutFaults(page), SETTLED).toEqual([]);
  await picture(page, 'fields-of-a-log-240');
});

async function openAt(path: string, width: number): Promise<Page> {
  const page = await it.context.newPage();
  await page.setViewportSize({ width, height: 900 });
  await page.goto(`${it.server.url}${path}`);
  await live(page);
  return page;
}

/** How much is seen of the agent's name in each row that is shown; all of one that is shorter counts as enough. */
function nameWidths(page: Page): Promise<number[]> {
  return page.locator('[data-session-row] [data-agent-name]').evaluateAll(
    (names, enough) =>
      names.map((name) => {
        const isWhole = name.scrollWidth <= name.clientWidth + 1;
        return isWhole ? Math.max(enough, name.clientWidth) : name.clientWidth;
      }),
    READABLE_PX,
  );
}

/** For who wants to look: INTERLUDE_PICTURES names a folder for a picture of each page in both themes. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.INTERLUDE_PICTURES;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html.${colorScheme}`).waitFor();
    await page.screenshot({ path: join(folder, `${name.replaceAll(' ', '-')}-${colorScheme}.png`) });
  }
}

async function showTasks(page: Page): Promise<void> {
  const panel = page.getByRole('complementary', { name: 'Tasks' });
  const opener = page.getByRole('button', { name: /^\d+ tasks?$/ });
  if (!(await panel.isVisible())) await opener.click();
  await panel.getByRole('link').first().waitFor();
}

async function showLog(page: Page): Promise<void> {
  if (!(await page.getByRole('log', { name: 'Agent log' }).isVisible())) await page.keyboard.press('l');
  await page.getByText('the last line').waitFor();
}

function calls(): AgUiEvent[] {
  const file = `/home/somebody/${'folder/'.repeat(12)}file.ts`;
  const old = Array.from({ length: 30 }, (_, at) => `const line${at} = ${at};`).join('\n');
  const todos = ['completed', 'in_progress', 'pending'].map((status, at) => ({
    content: `${SENTENCE}${at}`,
    activeForm: SENTENCE,
    status,
  }));
  return [
    ...reasoning('why', SENTENCE.repeat(6)),
    ...toolCall('c1', 'Edit', { file_path: file, old_string: old, new_string: old.replace('line7', 'other') }, 'done'),
    ...toolCall('c2', 'Write', { file_path: file, content: `${old}\n${WORD}` }, 'done'),
    ...toolCall('c3', 'TodoWrite', { todos }, 'done'),
    ...toolCall('c4', `mcp__${WORD}__search`, { [`key-${WORD}`]: SENTENCE }, SENTENCE.repeat(20)),
    ...toolCall(
      'c5',
      'Bash',
      { command: `echo ${WORD} && ${'ls '.repeat(90)}`, description: SENTENCE },
      `${WORD}\n`.repeat(30),
    ),
    ...message('answer', SENTENCE.repeat(4)),
  ];
}

/** A session with every mark that a row and a header can bear. */
function busy(): AgUiEvent[] {
  return [
    ...userTurn('b1', `**${SENTENCE}** ${WORD}`, [
      taskStarted('t1', `${SENTENCE}${WORD}`),
      taskStarted('t2', SENTENCE.repeat(3), { task_type: 'local_agent' }),
      taskStarted('t3', 'short'),
    ]),
    taskEnded('t1', 'failed', { exit_code: 137, summary: `${SENTENCE.repeat(5)}${WORD}` }),
    { type: 'CUSTOM', name: 'interlude:lost', value: { count: 12_345, reason: `outbox-full ${WORD}` } },
    ...wokenTurn('b2', 't1', `| a | b |\n|---|---|\n| **${SENTENCE}** | ${WORD} |`),
    ...message('owed', SENTENCE, 'user'),
    { type: 'RUN_STARTED', threadId: 'busy', runId: 'b3' },
    ...message('now', `${SENTENCE}${WORD}`),
  ] as AgUiEvent[];
}

function asks(): AgUiEvent[] {
  const question = {
    question: SENTENCE.repeat(2),
    header: WORD.slice(0, 60),
    options: [
      { label: SENTENCE, description: SENTENCE.repeat(3) },
      { label: WORD, description: WORD },
    ],
  };
  return [
    ...message('please', SENTENCE, 'user'),
    { type: 'RUN_STARTED', threadId: 'asks', runId: 'a1' },
    { type: 'TOOL_CALL_START', toolCallId: 'ac', toolCallName: 'Bash' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'ac', delta: JSON.stringify({ command: 'rm -rf build' }) },
    asked('p1', 'permission', { command: `echo ${WORD} ${'and '.repeat(100)}`, description: SENTENCE }, 'ac'),
    asked('q1', 'question', { questions: [question] }),
  ];
}

function asked(requestId: string, kind: string, input: unknown, toolCallId?: string): AgUiEvent {
  const value = {
    request_id: requestId,
    kind,
    tool_name: 'Bash',
    title: `Allow ${SENTENCE}`,
    input,
    tool_use_id: toolCallId,
  };
  return { type: 'CUSTOM', name: 'request:opened', value };
}

function failed(at: number): AgUiEvent[] {
  return [
    ...message(`f${at}`, `${SENTENCE} ${at}`, 'user'),
    { type: 'RUN_STARTED', threadId: `failed-${at}`, runId: `f${at}` },
    { type: 'RUN_ERROR', message: `${SENTENCE.repeat(3)}${WORD}`, code: WORD },
  ];
}

function large(): AgUiEvent[] {
  return Array.from({ length: 300 }, (_, at) =>
    userTurn(`l${at}`, `${at}: ${SENTENCE}`, SENTENCE.repeat(1 + (at % 7))),
  ).flat();
}

async function manyAgents(): Promise<void> {
  for (let at = 0; at < 30; at++) {
    const writer = new EventWriter(it.server, `agent-${at}-${'x'.repeat(at * 4)}`);
    await writer.write(
      `session-${at}-${'y'.repeat(at * 5)}`,
      userTurn(`m${at}`, `${SENTENCE} ${at}`, `**${SENTENCE}**`),
    );
    await writer.staysInTouch();
  }
}

/** Rows that bear all marks at once, of agents with all kinds of names. */
async function fullRows(): Promise<void> {
  const agents = {
    short: 'blue',
    usual: 'agent-checkout-service',
    long: `agent-${'w'.repeat(180)}`,
    hostile: 'red\u202Edeerf\u0007\u200B אבגדה '.repeat(5),
  };
  for (const [name, agentId] of Object.entries(agents)) {
    const agent = new EventWriter(it.server, agentId);
    const title = name === 'long' ? 'T'.repeat(119) : `Deploy the ${name} service to staging and watch it`;
    const words =
      name === 'hostile' ? '\u202Ewon\u0000 **done**\n\n|a|b|\n'.repeat(20) : `It is ${'very '.repeat(60)}done`;
    await agent.write(`${name}-full`, [
      ...userTurn('r1', title, words),
      ...[1, 2, 3, 4].map((at) => taskStarted(`t${at}`, `Watch ${at} ${'of many '.repeat(12)}`)),
      ...wokenTurn('r2', 't1', words),
      { type: 'RUN_STARTED', threadId: 's', runId: 'r3', metadata: { interlude: { turn: 'between-run' } } },
    ]);
    await agent.staysInTouch();
    await agent.failHook('Stop', 'exit 3', `${name}-full`);
    await agent.failHook('Stop', 'exit 4', `${name}-full`);
    await agent.lose(`${name}-full`, 1_234);
    await agent.puzzle(`${name}-full`);
    await owe(`${name}-full`, 3);
    await agent.write(`${name}-plain`, userTurn('r1', title, words));
    await agent.write(`${name}-failed`, [
      ...userTurn('r1', title, words),
      { type: 'RUN_STARTED', threadId: 's', runId: 'r2' },
      { type: 'RUN_ERROR', threadId: 's', runId: 'r2', message: `No disk left\n\n${'at '.repeat(80)}` },
    ]);
  }
}

async function longLog(): Promise<void> {
  const log = new LogWriter(it.server, LONG_NAME, `${LONG_NAME}-log`);
  const levels = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
  await log.write([
    ...Array.from({ length: 200 }, (_, at) => ({
      message: at % 5 === 0 ? `${WORD}${SENTENCE.repeat(at % 12)}` : `${SENTENCE}${at}`,
      level: levels[at % 5] as (typeof levels)[number],
      component: at % 7 === 0 ? WORD.slice(0, 100) : 'runner',
    })),
    { message: 'the last line' },
  ]);
}

async function owe(sessionId: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const response = await fetch(`${it.server.url}/api/v1/sessions/${sessionId}/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${it.server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: `Are you there? ${at}`, clientId: `${sessionId}-${at}` }),
    });
    if (!response.ok) throw new Error(await response.text());
  }
}
