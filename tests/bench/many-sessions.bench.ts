import { readFile } from 'node:fs/promises';
import { EventWriter } from '../support/event-writer';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';
import { note, report } from './report';

/** The start page with 20,000 open sessions: cost of a load, memory growth, and its effect on ingest. */
const SESSIONS = 20_000;
const LOADS = 200;
const READERS = 12;
const SEARCHES = {
  'one session': 'q=19999',
  'a word in every session': 'q=words',
  'a word in every session, in an unused state': 'q=words&state=failed',
  'a word in no session': 'q=nowhere',
  'a word in no session, too short for the index': 'q=zq',
  'several words, one agent': 'q=it+takes+answer&agent=fleet-500',
};

const site: OwnVisit = await visitOwn();
try {
  const headers = { cookie: (await site.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ') };
  for (let from = 0; from < SESSIONS; from += 500) {
    await new EventWriter(site.server, `fleet-${from}`).writeMany(
      Array.from({ length: 500 }, (_, index) => ({
        sessionId: `s${from + index}`,
        events: userTurn(
          'r',
          `Question ${from + index}`,
          `Answer ${from + index}. ${'It takes some words. '.repeat(10)}`,
        ),
      })),
    );
  }
  const load = async () => (await (await fetch(site.server.url, { headers })).arrayBuffer()).byteLength;
  const bytes = await load();
  note('20,000 sessions: start page size', bytes / 1024, 'KiB');
  for (let warm = 0; warm < 20; warm += 1) await load();
  const before = await residentMiB(site.server.pid);
  const began = performance.now();
  for (let done = 0; done < LOADS; done += 1) await load();
  note('20,000 sessions: one load of the start page', (performance.now() - began) / LOADS, 'ms');
  report(`20,000 sessions: memory growth after ${LOADS} loads`, (await residentMiB(site.server.pid)) - before, 'MiB', {
    atMost: 200,
  });
  const search = async (query: string) => {
    const began = performance.now();
    const response = await fetch(`${site.server.url}/api/v1/sessions?limit=100&${query}`, {
      headers: { authorization: `Bearer ${site.server.token}` },
    });
    if (!response.ok) throw new Error(await response.text());
    await response.arrayBuffer();
    return performance.now() - began;
  };
  let slowest = 0;
  for (const [what, query] of Object.entries(SEARCHES)) {
    const took: number[] = [];
    for (let times = 0; times < 9; times += 1) took.push(await search(query));
    const median = took.sort((a, b) => a - b)[4] ?? 0;
    note(`20,000 sessions: a search for ${what}`, median, 'ms');
    slowest = Math.max(slowest, median);
  }
  report('20,000 sessions: slowest search', slowest, 'ms', { atMost: 150 });
  let health = 0;
  let isSearched = false;
  const searches = Promise.all(
    Array.from({ length: READERS * 4 }, () => search(SEARCHES['a word in no session, too short for the index'])),
  ).finally(() => {
    isSearched = true;
  });
  while (!isSearched) {
    const began = performance.now();
    await (await fetch(`${site.server.url}/healthz`)).arrayBuffer();
    health = Math.max(health, performance.now() - began);
  }
  await searches;
  report(`20,000 sessions: slowest /healthz during ${READERS * 4} concurrent searches`, health, 'ms', { atMost: 100 });
  const agent = new EventWriter(site.server, 'beside');
  let longest = 0;
  let isOver = false;
  const readers = Array.from({ length: READERS }, async () => {
    while (!isOver) await load();
  });
  for (let turn = 0; turn < 50; turn += 1) {
    const sent = performance.now();
    await agent.write('beside', userTurn(`r${turn}`, 'And now?', 'Now.'));
    longest = Math.max(longest, performance.now() - sent);
  }
  isOver = true;
  await Promise.all(readers);
  report(`20,000 sessions: slowest ingest while ${READERS} operators load the start page`, longest, 'ms', {
    atMost: 1_000,
  });
} finally {
  await site.close();
}

/** A process's resident memory. */
async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1024;
}
