import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { EventWriter } from '../support/event-writer';
import { layoutFaults, movesOf, watchMoves } from '../support/layout-faults';
import { LogWriter } from '../support/log-writer';
import { playRecording } from '../support/play-recording';
import { live, transcriptOf } from '../support/transcript-page';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn, wokenTurn } from '../support/turn-events';
import { type Visit, visit } from '../support/visit';

/** Every page at five widths, of content nobody would draw a page for: no text is cut off, printed over or moved. */
const WIDTHS = [360, 768, 1024, 1440, 2560];

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

שלום, זה טקסט בעברית עם English words ו-123. مرحبا بالعالم ${'ا'.repeat(80)}
`;

let it: Visit;
beforeAll(async () => {
  it = await visit();
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
  await agent.park('parked', [taskEnded(`nobodys-${WORD}`, 'completed', { summary: SENTENCE.repeat(3) })]);
  for (let at = 0; at < 3; at++) await agent.write(`failed-${at}`, failed(at));
  await new EventWriter(it.server, 'large').write('large', large());
  await manyAgents();
  await longLog();
});
afterAll(async () => {
  expect(it.complaints).toEqual([]);
  await it.close();
});

interface Shown {
  path: string;
  /** What has to be done or waited for until the page shows what is looked at. */
  until?: (page: Page) => Promise<unknown>;
}

const PAGES: Record<string, Shown> = {
  'the start page': { path: '/' },
  'a session of wide content': {
    path: '/sessions/wide',
    until: (page) => transcriptOf(page).getByRole('table').first().waitFor(),
  },
  'a busy session with its tasks': { path: '/sessions/busy', until: showTasks },
  'a session with its log': { path: '/sessions/busy', until: showLog },
  'a session that asks': { path: '/sessions/asks' },
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

describe.each(WIDTHS)('%i px wide', (width) => {
  test.each(Object.keys(PAGES))('%s cuts off no text, prints none over another and moves none', async (name) => {
    const { path, until } = PAGES[name] as Shown;
    const page = await it.context.newPage();
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 900 });
    await page.addInitScript(() => localStorage.clear());
    await watchMoves(page);
    await page.goto(`${it.server.url}${path}`);
    if (!/signed-out|nowhere|nobody/.test(path)) await live(page);
    const moves = await movesOf(page);
    await until?.(page);
    await picture(page, `${name}-${width}`);
    expect({ moves, faults: await layoutFaults(page) }).toEqual({ moves: [], faults: [] });
    await page.close();
  });
});

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
  await page.keyboard.press('l');
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
