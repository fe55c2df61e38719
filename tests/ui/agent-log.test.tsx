// @vitest-environment happy-dom

import { matchesLine } from '@interlude/protocol/projections/log-filter';
import { compileLogRegex } from '@interlude/protocol/projections/log-regex';
import type { LogLine, LogPage } from '@interlude/protocol/read-models';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EmbedLog } from '@/app/(embed)/embed/agents/[agentId]/logs/embed-log';
import { LiveProvider } from '@/components/live/live-provider';
import { AgentLog } from '@/components/logs/agent-log';
import { filterOf, queryFromParams } from '@/components/logs/log-query';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { anAgent } from './rows';
import { scriptedFetch } from './scripted-stream';

const NOW = 1_795_170_000_000;
const aLine = (at: number, fields: Partial<LogLine> = {}): LogLine => ({
  position: String(at),
  line: at,
  occurredAt: NOW + at * 1_000,
  level: 'info',
  component: at % 2 === 0 ? 'outbox' : 'mirror',
  message: `line ${at}`,
  ...fields,
});

/** Of the runner's clock. */
const clockSkewMs = -420_000;
/** What the server has stored. */
let stored: LogLine[];
/** The error that the server answers with; null for none. */
let refusal: { status: number; message: string } | null;

beforeEach(() => {
  const stream = scriptedFetch();
  stored = Array.from({ length: 20 }, (_, index) => aLine(index + 1));
  refusal = null;
  history.replaceState(null, '', '/agents/a/logs');
  // rows are laid out in a box of some height only
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(1_000);
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    const { pathname, searchParams } = new URL(url, 'http://interlude.test');
    if (pathname.endsWith('/stream')) return stream.fetch(url, init);
    if (pathname.endsWith('/agents/a'))
      return Response.json({ position: '100', agent: anAgent({ id: 'a', clockSkewMs }) });
    if (refusal !== null) {
      const { status, message } = refusal;
      return Response.json({ error: { code: 'test', message } }, { status });
    }
    if (pathname.endsWith('/components')) {
      return Response.json({ components: ['mirror', 'outbox'].map((name) => ({ name, lines: 10 })) });
    }
    return Response.json(pageOf(searchParams));
  });
});
afterEach(() => {
  cleanup();
  localStorage.clear();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

function pageOf(params: URLSearchParams): LogPage {
  const query = queryFromParams(params);
  const compiled = query.isRegex ? compileLogRegex(query.text) : null;
  const filter = filterOf(query, compiled?.kind === 'compiled' ? compiled.regex : null);
  const lines = stored.filter((line) => matchesLine(filter, line));
  const log = { firstLine: 1, lastLine: stored.length, lines: stored.length, bytes: 100 };
  return { position: '100', hasMore: false, hasNewer: false, lines, log };
}

function open(search = '', compact = false, log = <AgentLog agentId="a" compact={compact} />) {
  history.replaceState(null, '', `/agents/a/logs${search}`);
  return render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>{log}</LiveProvider>
      </NowProvider>
    </NextPage>,
  );
}
const messages = () =>
  [...document.querySelectorAll('[data-line]')].map((row) => /line \d+/.exec(row.textContent ?? '')?.[0]);

test('shows the chosen components and puts them into the address', async () => {
  open();
  await screen.findByText('line 20');
  fireEvent.click(screen.getByLabelText('Component'));
  fireEvent.click(await screen.findByLabelText(/^outbox/));
  await vi.waitFor(() =>
    expect(messages()).toEqual(Array.from({ length: 10 }, (_, index) => `line ${(index + 1) * 2}`)),
  );
  expect(location.search).toBe('?component=outbox');
});

test('shows and downloads what an address with a component and times selects', async () => {
  open(`?component=outbox&from=${NOW + 5_000}&to=${NOW + 9_000}`);
  await screen.findByText('line 8');
  expect(messages()).toEqual(['line 6', 'line 8']);
  const download = screen.getByTitle('Download filtered log');
  expect(download.getAttribute('href')).toBe(
    `/api/v1/agents/a/logs/download?component=outbox&from=${NOW + 5_000}&to=${NOW + 9_000}`,
  );
});

test('on another page, keeps its query in the address beside that page’s', async () => {
  stored = stored.map((line) => (line.line % 5 === 0 ? { ...line, level: 'error' } : line));
  open('?tab=log&q=sessions&log-level=error#turn-1', true);
  await screen.findByText('line 20');
  expect(messages()).toEqual(['line 5', 'line 10', 'line 15', 'line 20']);
  fireEvent.change(screen.getByLabelText('Search log'), { target: { value: '15' } });
  await screen.findByText('1 hit');
  fireEvent.click(screen.getByRole('radio', { name: 'debug' }));
  await vi.waitFor(() => expect(location.search + location.hash).toBe('?tab=log&q=sessions&log-q=15#turn-1'));
});

test('switches to regular expressions, and explains why one is rejected', async () => {
  open();
  await screen.findByText('line 20');
  fireEvent.click(screen.getByLabelText('Regular expression'));
  const field = screen.getByLabelText('Search log');
  fireEvent.change(field, { target: { value: '^line [12]$' } });
  await screen.findByText('2 hits');
  refusal = { status: 400, message: 'The regex is not valid.' };
  fireEvent.change(field, { target: { value: 'line(' } });
  expect((await screen.findByRole('alert')).textContent).toContain('The regex is not valid.');
});

test('offers a retry when the log could not be loaded', async () => {
  refusal = { status: 503, message: 'Busy. Wait.' };
  open();
  const alert = await screen.findByRole('alert');
  expect(alert.textContent).toContain('Busy. Wait.');
  refusal = null;
  fireEvent.click(screen.getByText('Try again'));
  await screen.findByText('line 20');
  expect(screen.queryByRole('alert')).toBeNull();
});

test('explains how lines arrive while there are none', async () => {
  stored = [];
  open();
  await screen.findByText(/^No log lines yet/);
});

test('has ages by the server’s clock in an embed too', async () => {
  stored = [aLine(1, { occurredAt: Date.now() - 10 * 60_000 })];
  open('', false, <EmbedLog agentId="a" />);
  await screen.findByText('line 1');
  fireEvent.click(screen.getByLabelText('View'));
  fireEvent.click(await screen.findByLabelText('how long ago'));
  await vi.waitFor(() => expect(document.querySelector('[data-line] time')?.textContent).toBe('3 min'));
});

test('has the day above its first line, and times without dates', async () => {
  const midnight = new Date(NOW).setHours(24, 0, 0, 0);
  stored = [-2, -1, 0, 1].map((minutes, index) => aLine(index + 1, { occurredAt: midnight + minutes * 60_000 }));
  open();
  const day = await screen.findByRole('separator');
  expect(day.getAttribute('aria-label')).toMatch(/^\w+day \d+ \w+/);
  const rows = [...document.querySelectorAll('[data-row], [role="separator"]')];
  expect(rows.indexOf(day)).toBe(3);
  const times = [...document.querySelectorAll('[data-line] time')].map((time) => time.textContent);
  expect(times).toEqual(['23:58:00.000', '23:59:00.000', '00:00:00.000', '00:01:00.000']);
});

const press = (key: string) => fireEvent.keyDown(document.activeElement ?? document.body, { key });
const focused = () => /line \d+/.exec(document.activeElement?.textContent ?? '')?.[0];
const isFollowing = () => screen.getByRole('switch', { name: 'Follow' }).getAttribute('aria-checked');

test('a followed log has its cursor at the newest line, and follows until the cursor leaves it', async () => {
  open();
  await screen.findByText('line 20');
  press('j');
  await vi.waitFor(() => expect(focused()).toBe('line 20'));
  expect(isFollowing()).toBe('true');
  press('k');
  await vi.waitFor(() => expect(focused()).toBe('line 19'));
  expect(isFollowing()).toBe('false');
  press('G');
  await vi.waitFor(() => expect(focused()).toBe('line 20'));
  expect(isFollowing()).toBe('true');
});

test('keeps the focus at the nearest line when a filter removes the focused one', async () => {
  stored = stored.map((line) => (line.line % 5 === 0 ? { ...line, level: 'error' } : line));
  open();
  await screen.findByText('line 20');
  for (const line of ['line 20', 'line 19', 'line 18', 'line 17', 'line 16']) {
    press('k');
    await vi.waitFor(() => expect(focused()).toBe(line));
  }
  press('4');
  await vi.waitFor(() => expect(messages()).toEqual(['line 5', 'line 10', 'line 15', 'line 20']));
  await vi.waitFor(() => expect(focused()).toBe('line 20'));
  // Even the last line that matches is gone.
  press('5');
  await screen.findByText(/^No lines match/);
  await vi.waitFor(() => expect(document.activeElement).toBe(screen.getByRole('log')));
});

test('keys lead from error to error, the newest first, and on from the other end', async () => {
  stored = stored.map((line) => (line.line % 8 === 0 ? { ...line, level: 'error' } : line));
  stored[11] = aLine(12, { marker: { kind: 'level', level: 'debug', previous: 'info', by: 'ada' } });
  open();
  await screen.findByText('line 20');
  for (const [key, line] of ['e16', 'e8', 'e16', 'E8', 'E16'].map((step) => [step[0], `line ${step.slice(1)}`])) {
    press(key as string);
    await vi.waitFor(() => expect(focused()).toBe(line));
  }
  expect(isFollowing()).toBe('false');
  expect(messages()).toHaveLength(20);
});

test('Enter in the search field leads from hit to older hit and Shift+Enter back, around the end', async () => {
  open();
  await screen.findByText('line 20');
  const field = screen.getByLabelText('Search log');
  field.focus();
  fireEvent.change(field, { target: { value: 'line 1' } });
  // Before the search has started.
  press('Enter');
  await screen.findByText('11 of 11');
  for (const [shiftKey, number] of [
    [false, 10],
    [true, 11],
    [true, 1],
    [false, 11],
  ] as const) {
    fireEvent.keyDown(field, { key: 'Enter', shiftKey });
    await screen.findByText(`${number} of 11`);
  }
  expect(document.activeElement).toBe(field);
  expect(screen.getByLabelText('Next hit').title).toBe('Next hit (n, or Shift+Enter in the field)');
  expect(screen.getByLabelText('Previous hit').title).toBe('Previous hit (N, or Enter in the field)');
});

test('marks errors and warnings along the log, and a click on a mark leads to its line', async () => {
  const levels = { 20: 'warn', 30: 'error', 90: 'fatal' } as const;
  stored = Array.from({ length: 100 }, (_, index) => aLine(index + 1, { level: levels[(index + 1) as 20] ?? 'info' }));
  open();
  await screen.findByText('line 100');
  const drawn = (kind: string) =>
    [
      ...(document.querySelector(`[role="log"] svg .stroke-${kind}`)?.getAttribute('d') ?? '').matchAll(/ ([\d.]+)h/g),
    ].map(([, place]) => Math.floor(Number(place) / 2));
  // Two places are a hundredth of the height, and a line is nearly one.
  await vi.waitFor(() => expect([drawn('failed'), drawn('waiting')]).toEqual([[30, 89], [20]]));
  const marks = document.querySelector('[role="log"] svg') as SVGElement;
  expect(marks.getAttribute('aria-hidden')).toBe('true');
  vi.spyOn(marks, 'getBoundingClientRect').mockReturnValue({ top: 100, height: 200 } as DOMRect);
  fireEvent.click(marks, { clientY: 276 });
  await vi.waitFor(() => expect(document.querySelector('.border-accent')?.textContent).toContain('line 90'));
});
