import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Position } from '@interlude/protocol/position';
import type { AgentList, SessionList, TaskList, TranscriptPage, Turn } from '@interlude/protocol/read-models';
import { createClient } from '@libsql/client';
import { expect, vi } from 'vitest';
import { FrameReader } from './frames';
import { deltasOf, sessionsOf, stepOf } from './numbered-work';
import type { Watcher } from './watcher';

/**
 * Checks that the agents' numbered work arrived once and in order: in the database, on a stream read from the start, in
 * a watcher that resumed after every failure, and in the read models.
 */
interface Audited {
  url: string;
  token: string;
  databaseUrl: string;
  /** Completed steps by agent. */
  steps: ReadonlyMap<string, number>;
  watcher: Watcher;
}

/** An expected event log row. Deltas of an ended message are folded into one row. */
interface LoggedEvent {
  seq: number;
  sessionId: string;
  event: AgUiEvent;
}

export async function audit(audited: Audited): Promise<void> {
  const { steps, watcher } = audited;
  await watcher.reach(await newestShown(audited));
  for (const [agentId, count] of steps) {
    const { events, logLines } = expectedOf(agentId, count);
    await auditDatabase(audited, agentId, events, logLines);
    await auditStream(audited, agentId, events, logLines);
    auditWatcher(watcher, agentId, count, logLines);
    for (const sessionId of sessionsOf(agentId))
      await auditTranscript(audited, sessionId, turnsOf(agentId, count, sessionId));
  }
  expect(watcher.wrongs).toEqual([]);
  await auditFleet(audited);
}

/** The newest position visible in a frame. The position counter also advances for rows that no reader sees. */
async function newestShown({ databaseUrl }: Audited): Promise<Position> {
  const client = createClient({ url: databaseUrl });
  try {
    const { rows } = await client.execute(`SELECT max(position) AS newest FROM (
      SELECT max(position) AS position FROM events UNION ALL SELECT max(position) FROM log_lines
      UNION ALL SELECT max(updated_position) FROM sessions UNION ALL SELECT max(updated_position) FROM agents)`);
    return String(rows[0]?.newest ?? 0);
  } finally {
    client.close();
  }
}

function expectedOf(agentId: string, steps: number): { events: LoggedEvent[]; logLines: string[]; lastSeq: number } {
  const events: LoggedEvent[] = [];
  let seq = 0;
  for (const record of recordsOf(agentId, steps)) {
    seq += 1;
    if (record.kind !== 'event') continue;
    const before = events.at(-1);
    const isDelta = typeof record.event.delta === 'string';
    if (isDelta && before?.event.type === record.event.type) {
      const delta = `${before.event.delta}${record.event.delta}`;
      const whole = { ...record.event, delta, metadata: { interlude: { whole: true as const } } };
      events[events.length - 1] = { seq, sessionId: record.sessionId, event: whole };
    } else events.push({ seq, sessionId: record.sessionId, event: record.event });
  }
  return { events, logLines: Array.from({ length: steps }, (_, index) => String(index + 1)), lastSeq: seq };
}

function recordsOf(agentId: string, steps: number) {
  return Array.from({ length: steps }, (_, index) => stepOf(agentId, index + 1).records).flat();
}

async function auditDatabase(
  { databaseUrl }: Audited,
  agentId: string,
  events: LoggedEvent[],
  logLines: string[],
): Promise<void> {
  const client = createClient({ url: databaseUrl });
  try {
    const rows = async (sql: string) => (await client.execute({ sql, args: [agentId] })).rows;
    const stored = await rows('SELECT seq, session_id, payload FROM events WHERE producer_id = ? ORDER BY position');
    const seen = stored.map((row) => ({
      seq: Number(row.seq),
      sessionId: String(row.session_id),
      event: JSON.parse(String(row.payload)),
    }));
    expectSame(seen, events, `the events of ${agentId} in the database`);
    const lines = await rows('SELECT message FROM log_lines WHERE agent_id = ? ORDER BY position');
    expectSame(
      lines.map((row) => String(row.message)),
      logLines,
      `the log lines of ${agentId} in the database`,
    );
    const [producer] = await rows('SELECT last_seq, accepted, rejected, lost FROM producers WHERE id = ?');
    const sent = recordsOf(agentId, logLines.length).length;
    expect({ ...producer }).toEqual({ last_seq: sent, accepted: sent, rejected: 0, lost: 0 });
    expect(await rows('SELECT * FROM quarantine WHERE agent_id = ?')).toEqual([]);
    const [check] = (await client.execute('PRAGMA integrity_check')).rows;
    expect(check?.integrity_check).toBe('ok');
  } finally {
    client.close();
  }
}

async function auditStream(
  audited: Audited,
  agentId: string,
  events: LoggedEvent[],
  logLines: string[],
): Promise<void> {
  const topics = [...sessionsOf(agentId).map((id) => `topic=session:${id}`), `topic=logs:${agentId}`].join('&');
  const response = await request(audited, `/stream?${topics}&after=0`);
  const reader = new FrameReader(response.body as ReadableStream<Uint8Array>);
  await reader.frame('up-to-date');
  const { frames } = reader;
  await reader.cancel();
  const seen = frames.flatMap((frame) => (frame.event === 'session-event' && !isOwn(frame.data) ? [frame.data] : []));
  expectSame(
    seen.map(({ seq, sessionId, event }) => ({ seq, sessionId, event })),
    events,
    `the events of ${agentId} on a stream from the beginning`,
  );
  expectSame(
    frames.flatMap((frame) => (frame.event === 'log' ? [frame.data.message] : [])),
    logLines,
    `the log lines of ${agentId} on a stream from the beginning`,
  );
}

/** Rows written by the server itself, such as `runner away` on a slow machine. */
function isOwn({ seq }: { seq: number }): boolean {
  return seq === 0;
}

/** A watcher may receive a message as deltas, as one folded event, or as deltas followed by the folded event. */
function auditWatcher(watcher: Watcher, agentId: string, steps: number, logLines: string[]): void {
  const seen = watcher.events.flatMap(({ data }) => (data.agentId === agentId && !isOwn(data) ? [data] : []));
  expect(seen.findIndex(({ seq }, index) => index > 0 && seq <= (seen[index - 1]?.seq ?? 0))).toBe(-1);
  const isDelta = (event: AgUiEvent) => typeof event.delta === 'string';
  const wanted = recordsOf(agentId, steps).flatMap((record, index) =>
    record.kind === 'event' && !isDelta(record.event) ? [{ seq: index + 1, event: record.event }] : [],
  );
  expectSame(
    seen.filter(({ event }) => !isDelta(event)).map(({ seq, event }) => ({ seq, event })),
    wanted,
    `the events of ${agentId} as a watcher saw them`,
  );
  const prefix = `${agentId} `;
  expectSame(
    watcher.logLines.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length)),
    logLines,
    `the log lines of ${agentId} as a watcher saw them`,
  );
}

/** Checks the transcript's content and that the watcher's transcript is identical. */
async function auditTranscript(audited: Audited, sessionId: string, expected: TurnContent[]): Promise<void> {
  const turns: Turn[] = [];
  let before: Position | null = null;
  do {
    const query: string = before === null ? '' : `&before=${before}`;
    const page: TranscriptPage = await get(audited, `/sessions/${sessionId}/transcript?limit=200${query}`);
    turns.unshift(...page.turns);
    before = page.hasMore ? (page.turns[0]?.position ?? null) : null;
  } while (before !== null);
  const all = turns.map(contentOf).filter(({ kind, items }) => kind !== 'none' || items.length > 0);
  expectSame(all, expected, `the transcript of ${sessionId}`);
  const live = audited.watcher.transcripts.get(sessionId)?.turns ?? [];
  expectSame([...live], turns, `the transcript of ${sessionId} as a watcher folded it`);
  const { tasks } = await get<TaskList>(audited, `/sessions/${sessionId}/tasks`);
  const ended = tasks.map(({ status, exitCode, answeredInTurnId }) => ({ status, exitCode, answeredInTurnId }));
  const woken = expected.filter((turn) => turn.kind === 'between-run');
  expectSame(
    ended,
    woken.map(({ id }) => ({ status: 'completed' as const, exitCode: 0, answeredInTurnId: id })),
    `the tasks of ${sessionId}`,
  );
}

/** A turn's content without positions and times. */
interface TurnContent {
  id: string;
  kind: string;
  state: string;
  items: string[];
}

function contentOf({ id, kind, state, items }: Turn): TurnContent {
  return {
    id,
    kind,
    state,
    items: items.flatMap((item) => {
      if (item.kind === 'notice' && item.code?.startsWith('runner-')) return [];
      if (item.kind === 'message') return `${item.role}: ${item.text}${item.streaming ? ' …' : ''}`;
      if (item.kind === 'tool-call') return `${item.name} ${item.argsText} → ${item.result} (${item.status})`;
      return item.kind === 'task' ? `task ${item.phase}` : item.kind;
    }),
  };
}

function turnsOf(agentId: string, steps: number, sessionId: string): TurnContent[] {
  return Array.from({ length: steps }, (_, index) => index + 1)
    .filter((n) => stepOf(agentId, n).sessionId === sessionId)
    .flatMap((n): TurnContent[] => [
      {
        id: `${sessionId}-${n}`,
        kind: 'user',
        state: 'finished',
        items: [
          `user: Question ${n}`,
          `assistant: ${deltasOf(n).join('')}`,
          `Bash {"command":"seq ${n}"} → counted ${n} (completed)`,
          'task started',
        ],
      },
      {
        id: `${sessionId}-${n}-woken`,
        kind: 'between-run',
        state: 'finished',
        items: ['task completed', `assistant: It counted to ${n}.`],
      },
    ]);
}

/** Maximum time for the watcher's rows to match the read models. Shorter than the sweep interval. */
const COMPARED_MS = 5_000;

/** Checks that the watcher's latest rows equal the read models. */
async function auditFleet(audited: Audited): Promise<void> {
  const { watcher } = audited;
  // `lastSeenAt` is published only every few seconds
  const settled = <T extends { lastSeenAt: number }>(rows: Iterable<T>) =>
    [...rows].map((row) => ({ ...row, lastSeenAt: 0 }));
  const sessions = await vi.waitFor(async () => {
    const { sessions } = await get<SessionList>(audited, '/sessions');
    const { agents } = await get<AgentList>(audited, '/agents');
    // a sweep may write between two reads, so compare again
    await watcher.reach(await newestShown(audited));
    expect(byId(watcher.sessions.values())).toEqual(byId(sessions));
    expect(byId(settled(watcher.agents.values()))).toEqual(byId(settled(agents)));
    return sessions;
  }, COMPARED_MS);
  for (const session of sessions) {
    // the watcher receives only the newest tasks that ended before it connected
    if (!audited.steps.has(session.agentId)) continue;
    const { tasks } = await get<TaskList>(audited, `/sessions/${session.id}/tasks`);
    const seen = [...watcher.tasks.values()].filter((task) => task.sessionId === session.id);
    expectSame(byId(seen), byId(tasks), `the tasks of ${session.id} as a watcher saw them`);
  }
}

function byId<T extends { id: string }>(rows: Iterable<T>): T[] {
  return [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Reports the first difference only; a diff of thousands of rows is unreadable. */
function expectSame<T>(seen: T[], expected: T[], what: string): void {
  const at = expected.findIndex((value, index) => !equals(seen[index], value));
  if (at !== -1)
    expect(seen.slice(at, at + 3), `${what}, from number ${at + 1} on`).toEqual(expected.slice(at, at + 3));
  expect(seen.slice(expected.length), `${what}: beyond what there should be`).toEqual([]);
}

function equals(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => equals((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
  );
}

async function get<T>(audited: Audited, path: string): Promise<T> {
  return (await (await request(audited, path)).json()) as T;
}

async function request({ url, token }: Audited, path: string): Promise<Response> {
  const response = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
  expect(response.status, path).toBe(200);
  return response;
}
