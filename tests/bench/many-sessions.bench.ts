import { readFile } from 'node:fs/promises';
import { EventWriter } from '../support/event-writer';
import { userTurn } from '../support/turn-events';
import { type Visit, visit } from '../support/visit';
import { note, report } from './report';

/** The start page with 20,000 open sessions: what a load costs, what it leaves, and what an agent waits beside it. */
const SESSIONS = 20_000;
const LOADS = 200;
const READERS = 12;

const it: Visit = await visit();
try {
  const headers = { cookie: (await it.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ') };
  for (let from = 0; from < SESSIONS; from += 500) {
    await new EventWriter(it.server, `fleet-${from}`).writeMany(
      Array.from({ length: 500 }, (_, at) => ({
        sessionId: `s${from + at}`,
        events: userTurn('r', `Question ${from + at}`, `Answer ${from + at}. ${'It takes some words. '.repeat(10)}`),
      })),
    );
  }
  const load = async () => (await (await fetch(it.server.url, { headers })).arrayBuffer()).byteLength;
  const bytes = await load();
  note('20,000 sessions: the start page', bytes / 1024, 'KiB');
  for (let warm = 0; warm < 20; warm += 1) await load();
  const before = await residentMiB(it.server.pid);
  const began = performance.now();
  for (let done = 0; done < LOADS; done += 1) await load();
  note('20,000 sessions: one load of the start page', (performance.now() - began) / LOADS, 'ms');
  report(`20,000 sessions: memory that ${LOADS} loads leave`, (await residentMiB(it.server.pid)) - before, 'MiB', {
    atMost: 200,
  });
  const agent = new EventWriter(it.server, 'beside');
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
  report(`20,000 sessions: ingest while ${READERS} operators load the start page, slowest`, longest, 'ms', {
    atMost: 1_000,
  });
} finally {
  await it.close();
}

/** What a process holds of the machine's memory. */
async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) / 1024;
}
