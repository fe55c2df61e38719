import type { FleetCounts, InboxList } from '@interlude/protocol/inbox';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { AGENT_STATES, SESSION_GROUPS } from '@interlude/protocol/session-states';
import { INBOX_KINDS } from '@interlude/protocol/vocabulary';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KIND_WORD } from '@/components/inbox/inbox-labels';
import { GROUP_WORD } from '@/components/sessions/session-labels';
import { EventWriter } from '../support/event-writer';
import { connectFleet, type FleetAgent, writeFleet } from '../support/fleet';
import { WAIT_MS } from '../support/timeouts';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

const site = perFile(visitOwn);
let fleet: FleetAgent[];
let disconnect: () => void;
let pages: { name: string; page: Page }[];

beforeAll(async () => {
  fleet = await writeFleet(site.server, { longest: 0 });
  disconnect = await connectFleet(site.server, fleet);
  // Without a runner, it stays retired.
  await new EventWriter(site.server, 'lone').write('lone-1', userTurn('r1', 'Hello', 'Hello.'));
  const [, , failed] = fleet;
  const paths = ['/', '/inbox', '/agents', `/sessions/${failed?.sessions[0]?.id}`];
  pages = [];
  for (const width of [1440, 360]) {
    for (const path of paths) {
      const page = await site.load(path);
      await page.setViewportSize({ width, height: 900 });
      await live(page);
      pages.push({ name: `${path} at ${width} px`, page });
    }
  }
});
afterAll(() => disconnect?.());

const counts = () => site.read<FleetCounts>('/counts');
const sum = (of: Record<string, number>) => Object.values(of).reduce((total, count) => total + count, 0);

/** Each number that a page may show, by its place and words. */
function expected({ needsYou, inbox, sessions, groups, agents, agentStates, retiredStates, alsoFailed }: FleetCounts) {
  const both = alsoFailed.active > 0 ? `+${alsoFailed.active}` : '';
  const all: [string, number | string][] = [
    ['title', needsYou],
    ['Main: Inbox', needsYou],
    ['Main: Sessions', sum(sessions)],
    ['Main: Agents', agents],
    ...AGENT_STATES.map((state): [string, number] => [`Show only: ${GROUP_WORD[state]}`, groups[state]]),
    ...SESSION_GROUPS.map((group): [string, number] => [`heading: ${GROUP_WORD[group]}`, groups[group]]),
    ['end: sessions', sum(sessions)],
    ['heading: Needs you', needsYou],
    ['heading: Seen, snoozed or claimed', inbox.all - needsYou],
    ...INBOX_KINDS.map((kind): [string, number] => [`Kinds: ${KIND_WORD[kind]}`, inbox.kinds[kind]]),
    ['Review', inbox.requests],
    ...AGENT_STATES.map((state): [string, number] => [`Show only agents in: ${GROUP_WORD[state]}`, agentStates[state]]),
    ['Show only agents in: Failed', `${agentStates.failed}${both}`],
    ['shown agents', sum(agentStates)],
    ['agents', agents],
    ['retired', sum(retiredStates)],
  ];
  return new Map(all.map(([name, count]) => [name, count.toLocaleString('en')]));
}

/** The visible counts that `expected` names. */
function numbersOn(page: Page): Promise<[name: string, text: string][]> {
  return page.evaluate(() => {
    const seen = (selector: string) =>
      [...document.querySelectorAll<HTMLElement>(selector)].filter((element) => element.checkVisibility());
    const textOf = (element: Element | null | undefined) => element?.textContent?.trim() ?? '';
    const found: [string, string][] = [];
    /** `Failed 12` has the name `Failed` and the number `12`. */
    const read = (place: string, text: string) => {
      const [, name, number] = /^(.*?)\s*([\d,]+)$/s.exec(text) ?? [];
      if (number !== undefined) found.push([`${place}${name}`, number]);
    };
    const inTitle = /^\(([\d,]+)\)/.exec(document.title)?.[1];
    found.push(['title', inTitle ?? '0']);
    const isMarked = document.querySelector('link[rel="icon"]')?.getAttribute('href')?.endsWith('/icon-news.svg');
    if (isMarked !== (inTitle !== undefined)) found.push(['icon', String(isMarked)]);
    for (const link of seen('nav[aria-label="Main"] a')) {
      const [name = ''] = /Inbox|Sessions|Agents/.exec(textOf(link)) ?? [];
      if (name === '') continue;
      found.push([`Main: ${name}`, textOf(link.querySelector('.tabular')) || '0']);
      const spoken = link.getAttribute('aria-description') ?? /new: ([\d,]+)/.exec(textOf(link))?.[1];
      found.push([`Main: ${name}`, spoken ?? '0']);
    }
    for (const chip of seen('fieldset label:has(.state-word)')) {
      const legend = textOf(chip.closest('fieldset')?.querySelector('legend'));
      found.push([`${legend}: ${textOf(chip.querySelector('.state-word'))}`, textOf(chip.querySelector('.tabular'))]);
    }
    for (const heading of seen('h2[id^="sessions-"], h2[id^="inbox-"]')) read('heading: ', textOf(heading));
    for (const link of seen('nav[aria-label="Kinds"] a')) read('Kinds: ', textOf(link));
    for (const button of seen('button')) {
      const number = /^Review ([\d,]+) requests$/.exec(textOf(button))?.[1];
      if (number !== undefined) found.push(['Review', number]);
    }
    for (const status of seen('[role="status"]')) {
      const [, , shown, all, what] =
        /^(([\d,+]+) of )?([\d,]+) (sessions|agents)$/.exec(textOf(status.firstElementChild ?? status)) ?? [];
      if (what === 'sessions') found.push(['end: sessions', all ?? '']);
      if (what === 'agents') found.push(['shown agents', shown ?? all ?? ''], ['agents', all ?? '']);
    }
    for (const label of seen('label')) {
      const number = /^([\d,]+) retired$/.exec(textOf(label))?.[1];
      if (number !== undefined) found.push(['retired', number]);
    }
    return found;
  });
}

/** Numbers that differ from the server's, by page. */
async function differences(): Promise<string[]> {
  const truth = expected(await counts());
  const found: string[] = [];
  for (const { name, page } of pages) {
    for (const [what, number] of await numbersOn(page)) {
      const right = truth.get(what);
      if (number !== right) found.push(`${name}: ${what} ${number}, not ${right}`);
    }
  }
  return found;
}

const allAgree = () => expect.poll(differences, { timeout: WAIT_MS }).toEqual([]);

async function send(method: string, path: string, body: object): Promise<void> {
  const { url, token } = site.server;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(`${url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
}

/** Resolves once the server counts a change of this kind. */
async function changed(of: (counts: FleetCounts) => number, change: () => Promise<void>): Promise<void> {
  const before = of(await counts());
  await change();
  await expect.poll(async () => of(await counts()), { timeout: WAIT_MS }).not.toBe(before);
}

test('the start, inbox, agents and session pages show the server’s counts', async () => {
  await allAgree();
  const shown = new Map<string, Set<string>>();
  for (const { name, page } of pages) shown.set(name, new Set((await numbersOn(page)).map(([what]) => what)));
  const all = new Set([...shown.values()].flatMap((names) => [...names]));
  const { groups, agentStates, inbox } = await counts();
  const chips = AGENT_STATES.filter((state) => groups[state] > 0);
  const agentChips = AGENT_STATES.filter((state) => agentStates[state] > 0);
  const kinds = INBOX_KINDS.filter((kind) => inbox.kinds[kind] > 0);
  const everywhere = ['title', 'Main: Inbox', 'Main: Sessions', 'Main: Agents'];
  for (const names of shown.values()) expect([...names]).toEqual(expect.arrayContaining(everywhere));
  expect([...all].sort()).toEqual(
    expect.arrayContaining([
      ...chips.map((state) => `Show only: ${GROUP_WORD[state]}`),
      ...agentChips.map((state) => `Show only agents in: ${GROUP_WORD[state]}`),
      ...kinds.map((kind) => `Kinds: ${KIND_WORD[kind]}`),
      ...['heading: Needs input', 'heading: Failed', 'heading: Needs you', 'Review', 'end: sessions', 'agents'],
    ]),
  );
});

test('the filters of the start page need no scrolling at 1680 px', async () => {
  const page = await site.load('/');
  await page.setViewportSize({ width: 1680, height: 900 });
  await live(page);
  const [chips, unseen] = await page
    .locator('[aria-label=Sessions] fieldset')
    .evaluate(({ children, parentElement: strip }) => [
      children.length,
      strip && strip.scrollWidth - strip.clientWidth,
    ]);
  expect(chips).toBeGreaterThan(6);
  expect(unseen).toBe(0);
});

test('all numbers follow an answer, an end, a crash, an archived session and a retired agent', async () => {
  const [asks, , , waits, works, idle] = fleet as [
    FleetAgent,
    FleetAgent,
    FleetAgent,
    FleetAgent,
    FleetAgent,
    FleetAgent,
  ];
  const idOf = ({ sessions }: FleetAgent) => sessions[0]?.id ?? '';
  await changed(
    ({ inbox }) => inbox.requests,
    () => send('POST', `/sessions/${idOf(asks)}/requests/${idOf(asks)}-last-asks`, { behavior: 'allow' }),
  );
  await allAgree();
  await changed(
    ({ sessions }) => sessions.exited,
    () => send('POST', `/sessions/${idOf(idle)}/end`, {}),
  );
  await allAgree();
  await changed(
    ({ groups }) => groups.failed,
    () => works.writer.write(idOf(works), [{ type: 'CUSTOM', name: 'session:ended', value: { exitCode: 137 } }]),
  );
  await allAgree();
  await changed(
    ({ groups }) => groups.archived,
    () => send('PUT', `/sessions/${idOf(waits)}/arrangement`, { archived: true }),
  );
  await allAgree();
  await changed(
    ({ retiredStates }) => sum(retiredStates),
    () => send('PUT', '/agents/lone/retirement', { retired: true }),
  );
  expect((await site.read<{ agent: AgentSummary }>('/agents/lone')).agent.retiredAt).not.toBeNull();
  await allAgree();
});

test('all numbers follow the end of a snooze', async () => {
  const { items } = await site.read<InboxList>('/inbox?kind=failure&kind=permission');
  const ids = ['failure', 'permission'].map((wanted) => items.find(({ kind }) => kind === wanted)?.id);
  const before = await counts();
  const isBack = async () => (await counts()).needsYou === before.needsYou;
  const until = Date.now() + 8_000;
  await changed(
    ({ needsYou }) => needsYou,
    () => send('POST', '/inbox/marks', { ids, mark: 'snoozed', until }),
  );
  expect((await counts()).inbox.requests).toBe(before.inbox.requests - 1);
  await allAgree();
  await expect.poll(isBack, { timeout: WAIT_MS }).toBe(true);
  await allAgree();
});

test('a failure among 300 sessions is found with one press and opened with the second', async () => {
  const page = await site.load('/');
  await live(page);
  await page.locator('fieldset label', { hasText: 'Failed' }).first().click();
  const failed = page.locator('[data-session-row]', { hasText: '401 invalid x-api-key' }).first();
  await failed.click();
  await page.waitForURL(/\/sessions\//);
  await page.locator('main header', { hasText: 'Failed' }).waitFor();
  await page.locator('article', { hasText: '401 invalid x-api-key' }).first().waitFor();
});
