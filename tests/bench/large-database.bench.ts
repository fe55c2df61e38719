import { copyFile, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SESSION_STATES } from '@interlude/protocol/session-states';
import { LocalConnection } from '@/db/local-connection';
import { chunkId } from '@/db/log-rows';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { median, note, report } from './report';
import { type WorkRecord, workload } from './workload';

/**
 * 5 million events of 20,000 sessions and 500 agents: start time, and the first page of each list compared with a
 * database of 1 % of the rows. Runners send that 1 %; the rest are copies of its rows with other ids, because sending
 * all would take an hour.
 */
const AGENTS = 5;
const SESSIONS_PER_AGENT = 40;
const EVENTS = 50_000;
const COPIES = 100;
const LOADS = 15;
const PER_REQUEST = 500;

/** At least one inbox page, so that both databases show a full page. */
const FAILED_SESSIONS = 120;
/** Lines per agent, in whole chunks, so that a start has nothing to index. */
const LOG_LINES = 1_024;

/** Tables with rows of agents or sessions, and the conditions that exclude the dashboard's own rows. */
const MULTIPLIED = {
  producers: 'id',
  agents: 'id',
  sessions: 'id',
  producer_sessions: 'session_id',
  turns: 'session_id',
  tasks: 'session_id',
  obligations: 'session_id',
  events: 'session_id',
  inbox: 'agent_id',
  insights: 'agent_id',
  activity: 'agent_id',
  agent_logs: 'agent_id',
  log_components: 'agent_id',
  log_lines: 'agent_id',
  // by the agent number in the id; pages don't read the search tables
  log_chunks: null,
};

const PAGES = [
  '/',
  '/agents',
  '/inbox',
  '/sessions/bench-0-s0',
  '/agents/bench-0',
  '/agents/bench-0/logs',
  '/settings',
  // one page; without a filter, up to 1,000 sessions that have not exited are listed
  `/api/v1/sessions?limit=50&${SESSION_STATES.map((state) => `state=${state}`).join('&')}`,
  '/api/v1/agents?limit=50',
  '/api/v1/inbox?limit=50',
  '/api/v1/sessions/bench-0-s0/transcript?limit=50',
  '/metrics',
];

const TOKEN = 'a-token-for-benches-0123456789';
/** Sign-in cookies by server, because a token doesn't open pages. */
const cookies = new Map<LiveServer, string>();
const folder = await mkdtemp(join(tmpdir(), 'interlude-large-'));
const [small, large] = [join(folder, 'small'), join(folder, 'large')];
const servers: LiveServer[] = [];
try {
  const first = await startLiveServer({ dataDir: small, token: TOKEN });
  servers.push(first);
  await fill(first);
  await first.stop();
  servers.pop();
  const target = await startLiveServer({ dataDir: large, token: TOKEN });
  await target.stop();
  await copyFile(join(small, 'interlude.db'), join(large, 'interlude.db'));
  await multiply(join(large, 'interlude.db'));

  const startedAt = performance.now();
  const few = await startLiveServer({ dataDir: small, token: TOKEN });
  servers.push(few);
  const begunAt = performance.now();
  note('1 % of 5 M events: start', begunAt - startedAt, 'ms');
  const many = await startLiveServer({ dataDir: large, token: TOKEN });
  servers.push(many);
  report('5 M events: start', performance.now() - begunAt, 'ms', { atMost: 3_000 });
  await many.kill9();
  const againAt = performance.now();
  await many.restart();
  report('5 M events: start after a kill', performance.now() - againAt, 'ms', { atMost: 3_000 });
  for (const server of [few, many]) cookies.set(server, await signIn(server));
  for (const path of PAGES) {
    // alternate, so that other load affects both
    const times = { few: [] as number[], many: [] as number[] };
    for (let load = 0; load < LOADS + 3; load += 1) {
      const [one, other] = [await get(few, path), await get(many, path)];
      if (load < 3) continue;
      times.few.push(one);
      times.many.push(other);
    }
    const [least, most] = [median(times.few), median(times.many)];
    note(`5 M events: ${path}`, most, 'ms');
    report(`5 M events: ${path}, relative to 1 %`, most / least, '×', { atMost: 1.5 });
  }
} finally {
  for (const server of servers) await server.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Writes rows as runners do. */
async function fill(server: LiveServer): Promise<void> {
  const sources = Array.from({ length: AGENTS }, (_, agent) => workload(`bench-${agent}`, SESSIONS_PER_AGENT));
  const count = async () => {
    const connection = new LocalConnection(join(small, 'interlude.db'), 5_000);
    const { rows } = await connection.execute('SELECT count(*) AS count FROM events', 'loop');
    connection.close();
    return Number(rows[0]?.count);
  };
  const send = async (agent: number, records: { seq: number }[]) => {
    const response = await fetch(`${server.url}/api/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ producer: { id: `bench-${agent}`, epoch: 1 }, records }),
    });
    const answer = (await response.json()) as { rejected?: unknown[] };
    if (!response.ok || answer.rejected?.length !== 0) throw new Error(JSON.stringify(answer));
  };
  let seq = 0;
  for (let sent = 0; sent % 20 !== 0 || (await count()) < EVENTS; sent += 1) {
    for (const [agent, source] of sources.entries()) {
      await send(
        agent,
        Array.from({ length: PER_REQUEST }, () => source.next().value as WorkRecord),
      );
    }
    seq += PER_REQUEST;
  }
  for (const agent of sources.keys()) {
    const rest = [...failures(`bench-${agent}`), ...logLines(`bench-${agent}`)];
    const records = rest.map((record, index) => ({ ...record, seq: seq + index + 1 }));
    for (let index = 0; index < records.length; index += PER_REQUEST)
      await send(agent, records.slice(index, index + PER_REQUEST));
  }
  await untilIndexed();
}

/** Fails some of an agent's sessions, which adds inbox items. */
function failures(agentId: string) {
  return Array.from({ length: FAILED_SESSIONS / AGENTS }, (_, index) => {
    const sessionId = `${agentId}-s${SESSIONS_PER_AGENT - 1 - index}`;
    const runId = `${sessionId}-broken`;
    const of = { kind: 'event', agentId, sessionId, occurredAt: Date.now() };
    return [
      { ...of, event: { type: 'RUN_STARTED', threadId: sessionId, runId } },
      { ...of, event: { type: 'RUN_ERROR', runId, message: 'The model does not answer.' } },
    ];
  }).flat();
}

/** An agent's log with occasional hook failures. */
function logLines(agentId: string) {
  return Array.from({ length: LOG_LINES }, (_, index) => {
    const fails = index % 16 === 0;
    const said = fails ? { insight: { signal: 'hook_fatal', source: 'Stop' } } : {};
    const message = `${fails ? 'exit 3: could not read' : 'has read'} the input of call ${index}`;
    const log = { level: fails ? 'fatal' : 'info', component: `hook:${index % 5}`, message, ...said };
    return { kind: 'log', agentId, occurredAt: Date.now(), log };
  });
}

async function untilIndexed(): Promise<void> {
  const connection = new LocalConnection(join(small, 'interlude.db'), 5_000);
  const left = async () => {
    const { rows } = await connection.execute('SELECT sum(last_line - indexed_line) AS lines FROM agent_logs', 'loop');
    return Number(rows[0]?.lines);
  };
  while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 100));
  connection.close();
}

async function signIn(server: LiveServer): Promise<string> {
  const response = await fetch(`${server.url}/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: server.url },
    body: new URLSearchParams({ token: TOKEN }),
    redirect: 'manual',
  });
  const [cookie = ''] = response.headers.getSetCookie();
  if (response.status !== 303 || cookie === '') throw new Error(`sign-in returned ${response.status}`);
  return cookie.split(';')[0] ?? '';
}

/** Copies every row with other ids and positions. */
async function multiply(path: string): Promise<void> {
  const connection = new LocalConnection(path, 5_000);
  const run = (sql: string) => connection.execute(sql, 'thread');
  await run('PRAGMA synchronous = OFF');
  await run('PRAGMA cache_size = -400000');
  const [counter] = (await run('SELECT position FROM counter')).rows;
  const shift = Number(counter?.position) + 1;
  const begunAt = performance.now();
  await run('BEGIN IMMEDIATE');
  // by table, so that each index is built in one pass
  for (const [table, owner] of Object.entries(MULTIPLIED)) {
    const columns = (await run(`SELECT name, type FROM pragma_table_info('${table}')`)).rows.filter(
      ({ name }) => !(table === 'sessions' && name === 'number'),
    );
    const values = columns.map(({ name, type }) => {
      if (table === 'agent_logs' && name === 'number') return `number + k * ${AGENTS}`;
      if (table === 'log_chunks' && name === 'id') return `id + k * ${chunkId(AGENTS, 0)}`;
      if (/position$/.test(String(name))) return `"${name}" + k * ${shift}`;
      return String(type).toLowerCase() === 'text' ? `replace("${name}", 'bench-', 'bench-' || k || '.')` : `"${name}"`;
    });
    const names = columns.map(({ name }) => `"${name}"`).join(', ');
    await run(`WITH RECURSIVE copies(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM copies WHERE k < ${COPIES - 1})
      INSERT INTO ${table} (${names}) SELECT ${values.join(', ')} FROM copies, ${table} AS original
        WHERE ${owner === null ? 'true' : `${owner} LIKE 'bench-%'`} ORDER BY k, original.rowid`);
  }
  await run(`UPDATE counter SET position = ${shift * COPIES}`);
  await run('COMMIT');
  await run('PRAGMA wal_checkpoint(TRUNCATE)');
  const [sum] = (
    await run(`SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM sessions) AS sessions,
      (SELECT count(*) FROM inbox WHERE done_at IS NULL) AS items, (SELECT count(*) FROM log_lines) AS lines`)
  ).rows;
  connection.close();
  // flush to disk before a start is measured
  const file = await open(path, 'r+');
  await file.sync();
  await file.close();
  note('5 M events: events', Number(sum?.events), '');
  note('5 M events: sessions', Number(sum?.sessions), '');
  note('5 M events: open inbox items', Number(sum?.items), '');
  note('5 M events: log lines', Number(sum?.lines), '');
  note('5 M events: copying', (performance.now() - begunAt) / 1_000, 's');
}

async function get(server: LiveServer, path: string): Promise<number> {
  const begunAt = performance.now();
  const isProgram = /^\/(api|metrics)/.test(path);
  const headers: HeadersInit = isProgram ? { authorization: `Bearer ${TOKEN}` } : { cookie: cookies.get(server) ?? '' };
  const response = await fetch(`${server.url}${path}`, { headers, redirect: 'manual' });
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  await response.arrayBuffer();
  return performance.now() - begunAt;
}
