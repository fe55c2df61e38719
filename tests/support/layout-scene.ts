import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { EventWriter } from './event-writer';
import { expectNoFaults, layoutShifts, watchLayoutShifts } from './layout-faults';
import type { LiveServer } from './live-server';
import { LogWriter } from './log-writer';
import { playRecording } from './play-recording';
import { live, transcriptOf } from './transcript-page';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn, wokenTurn } from './turn-events';
import { clearSettings, type Visit } from './visit';

/** Extreme content: long words, many badges, right-to-left names. */

type Server = LiveServer;

export const LONG_NAME = `agent-${'of-the-very-long-name-'.repeat(8)}end`;
const WORD = 'Donaudampfschifffahrtsgesellschaft'.repeat(6);
const SENTENCE = 'The migration of the ledger went through on the third attempt, after the lock was let go. ';

const WIDE = `# ${SENTENCE}

A word of ${WORD}, a path /${'folder/'.repeat(40)}file.ts, and \`${'code'.repeat(60)}\`.

| ${Array.from({ length: 14 }, (_, index) => `column ${index}`).join(' | ')} |
|${' --- |'.repeat(14)}
| ${Array.from({ length: 14 }, (_, index) => `value-${index}-${'x'.repeat(20)}`).join(' | ')} |

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

export const SESSION_ROWS = '[data-session-row]';
export const AGENT_ROWS = 'main [role=row] a[href^="/agents/"]';
/** Minimum width in pixels of a readable agent name. */
export const READABLE_PX = 56;

/** Writes the pages' sessions, agents and logs. */
export async function writeLayoutScene(server: Server): Promise<void> {
  const agent = new EventWriter(server, LONG_NAME);
  await agent.write('wide', [
    ...userTurn('r1', `${WORD} and on. ${SENTENCE.repeat(5)}`, WIDE),
    ...userTurn('r2', SENTENCE, calls()),
  ]);
  await agent.write('busy', busy());
  await agent.failHook(`stop-${WORD}`, `${WORD} ${SENTENCE}`, 'busy');
  await agent.write('asks', requestEvents());
  await agent.staysInTouch();
  // a turn without an end is presumed lost after a minute, which would move rows mid-test
  await agent.write('parked', userTurn('r1', SENTENCE, SENTENCE));
  await agent.park('parked', [taskEnded(`nobodys-${WORD}`, 'completed', { summary: SENTENCE.repeat(3) })]);
  for (let index = 0; index < 3; index++) await agent.write(`failed-${index}`, failed(index));
  const talker = new EventWriter(server, 'large');
  await talker.write('large', large());
  await talker.staysInTouch();
  await fullRows(server);
  await longLog(server);
}

/** Writes enough sessions to scroll a list, some with subagents. */
export async function writeManySessions(server: Server): Promise<void> {
  await playRecording(server, 'demo/test-run');
  await playRecording(server, 'demo/research');
  await manyAgents(server);
}

interface LayoutPage {
  path: string;
  /** Resolves once the page shows the tested content. */
  until?: (page: Page) => Promise<unknown>;
  /** Delays content that must not cause shifts. @returns releases it and waits for it */
  later?: (page: Page) => Promise<() => Promise<unknown>>;
  /** Width at which a pinned card takes space after the first intersection check. */
  movesAt?: number;
}

export const PAGES: Record<string, LayoutPage> = {
  'the start page': { path: '/', later: inboxCount },
  'a session with wide content': {
    path: '/sessions/wide',
    until: (page) => transcriptOf(page).getByRole('table').first().waitFor(),
  },
  'a busy session with its tasks': { path: '/sessions/busy', until: showTasks },
  'a session with its log': { path: '/sessions/busy', until: showLog },
  // On a phone the first of two requests is out of view and pinned above the composer.
  'a session with a request': { path: '/sessions/asks', movesAt: 360 },
  'a session of 300 turns': { path: '/sessions/large' },
  'a session with subagents': { path: '/sessions/demo-research' },
  'an unknown session': { path: '/sessions/nobody' },
  agents: { path: '/agents' },
  'an agent': { path: `/agents/${LONG_NAME}`, later: staysUnseen },
  'the log of an agent': {
    path: `/agents/${LONG_NAME}/logs`,
    until: (page) => page.getByText('the last line').waitFor(),
  },
  'the signed-out page': { path: '/signed-out?reason=wrong-token' },
  'a missing page': { path: '/nowhere' },
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
    // a shift is visible only between two frames
    await layoutShifts(page);
    letGo();
    await page.getByRole('link', { name: /^Inbox\s*new: \d/ }).waitFor();
  };
}

/** A page marks failures as seen after a second, and rows then lose their badge. */
async function staysUnseen(page: Page): Promise<() => Promise<unknown>> {
  await page.route(/\/insights\/seen$/, () => {});
  return async () => undefined;
}

/** Loads a page at the first width. Fails on layout shifts, or on clipped or overlapping text at any width. */
export async function expectSoundLayout(
  site: Visit<LiveServer>,
  name: string,
  widths: readonly number[],
): Promise<void> {
  const { path, until, later, movesAt } = PAGES[name] as LayoutPage;
  const page = await site.context.newPage();
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.setViewportSize({ width: widths[0] as number, height: 900 });
  await page.addInitScript(clearSettings);
  await watchLayoutShifts(page);
  const come = await later?.(page);
  await page.goto(`${site.server.url}${path}`);
  if (!/signed-out|nowhere|nobody/.test(path)) await live(page);
  await come?.();
  const moves = movesAt === widths[0] ? [] : await layoutShifts(page);
  expect(moves, moves.join('\n')).toEqual([]);
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    await until?.(page);
    await expectNoFaults(page);
    await picture(page, `${name}-${width}`);
  }
  await page.close();
}

export async function openAt(site: Visit<LiveServer>, path: string, width: number): Promise<Page> {
  const page = await site.context.newPage();
  await page.setViewportSize({ width, height: 900 });
  await page.goto(`${site.server.url}${path}`);
  await live(page);
  return page;
}

/** The visible width of each row's agent name in pixels. A complete name counts as readable. */
export function nameWidths(page: Page): Promise<number[]> {
  return page.locator('[data-session-row] [data-agent-name]').evaluateAll(
    (names, enough) =>
      names.map((name) => {
        const isWhole = name.scrollWidth <= name.clientWidth + 1;
        return isWhole ? Math.max(enough, name.clientWidth) : name.clientWidth;
      }),
    READABLE_PX,
  );
}

/** Saves screenshots of both themes to INTERLUDE_PICTURES, if set. */
export async function picture(page: Page, name: string): Promise<void> {
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
  const panel = page.getByRole('complementary', { name: 'Tasks' }).filter({ visible: true }).first();
  // Wide screens show the tasks beside the transcript, too.
  if (!(await panel.isVisible())) await page.getByRole('tab', { name: /^Tasks/ }).click();
  await panel.getByRole('link').first().waitFor();
}

async function showLog(page: Page): Promise<void> {
  if (!(await page.getByRole('log', { name: 'Agent log' }).isVisible())) await page.keyboard.press('l');
  await page.getByText('the last line').waitFor();
}

function calls(): AgUiEvent[] {
  const file = `/home/somebody/${'folder/'.repeat(12)}file.ts`;
  const old = Array.from({ length: 30 }, (_, index) => `const line${index} = ${index};`).join('\n');
  const todos = ['completed', 'in_progress', 'pending'].map((status, index) => ({
    content: `${SENTENCE}${index}`,
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

/** A session with every badge that a row and header can show. */
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

function requestEvents(): AgUiEvent[] {
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
    requestOpened('p1', 'permission', { command: `echo ${WORD} ${'and '.repeat(100)}`, description: SENTENCE }, 'ac'),
    requestOpened('q1', 'question', { questions: [question] }),
  ];
}

function requestOpened(requestId: string, kind: string, input: unknown, toolCallId?: string): AgUiEvent {
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
  return Array.from({ length: 300 }, (_, index) =>
    userTurn(`l${index}`, `${index}: ${SENTENCE}`, SENTENCE.repeat(1 + (index % 7))),
  ).flat();
}

async function manyAgents(server: Server): Promise<void> {
  for (let index = 0; index < 30; index++) {
    const writer = new EventWriter(server, `agent-${index}-${'x'.repeat(index * 4)}`);
    await writer.write(
      `session-${index}-${'y'.repeat(index * 5)}`,
      userTurn(`m${index}`, `${SENTENCE} ${index}`, `**${SENTENCE}**`),
    );
    await writer.staysInTouch();
  }
}

/** Rows with all badges at once and all kinds of agent names. */
async function fullRows(server: Server): Promise<void> {
  const agents = {
    short: 'blue',
    usual: 'agent-checkout-service',
    long: `agent-${'w'.repeat(180)}`,
    hostile: 'red\u202Edeerf\u0007\u200B אבגדה '.repeat(5),
  };
  for (const [name, agentId] of Object.entries(agents)) {
    const agent = new EventWriter(server, agentId);
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
    await addObligations(server, `${name}-full`, 3);
    await agent.write(`${name}-plain`, userTurn('r1', title, words));
    await agent.write(`${name}-failed`, [
      ...userTurn('r1', title, words),
      { type: 'RUN_STARTED', threadId: 's', runId: 'r2' },
      { type: 'RUN_ERROR', threadId: 's', runId: 'r2', message: `No disk left\n\n${'at '.repeat(80)}` },
    ]);
  }
}

async function longLog(server: Server): Promise<void> {
  const log = new LogWriter(server, LONG_NAME, `${LONG_NAME}-log`);
  const levels = ['debug', 'info', 'warn', 'error', 'fatal'] as const;
  await log.write([
    ...Array.from({ length: 200 }, (_, index) => ({
      message: index % 5 === 0 ? `${WORD}${SENTENCE.repeat(index % 12)}` : `${SENTENCE}${index}`,
      level: levels[index % 5] as (typeof levels)[number],
      component: index % 7 === 0 ? WORD.slice(0, 100) : 'runner',
    })),
    { message: 'the last line' },
  ]);
}

async function addObligations(server: Server, sessionId: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const response = await fetch(`${server.url}/api/v1/sessions/${sessionId}/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: `Are you there? ${index}`, clientId: `${sessionId}-${index}` }),
    });
    if (!response.ok) throw new Error(await response.text());
  }
}
