import type { ErrorBody } from '@interlude/protocol/errors';
import { isId } from '@interlude/protocol/fields';
import { foldItems } from '@interlude/protocol/projections/items';
import { EMPTY_TRANSCRIPT, foldTranscript } from '@interlude/protocol/projections/transcript';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { callRoute } from '../support/call-route';
import { FrameReader } from '../support/frames';
import { type InProcessTarget, inProcessTarget, record, sendEvents } from '../support/ingest-target';

/** No accepted record may make a later request, sweep or page fail, whether by a lone surrogate or any number. */
const T0 = 1_795_170_000_000;
let target: InProcessTarget;
let errors: ReturnType<typeof vi.spyOn>;
afterEach(async () => {
  vi.restoreAllMocks();
  await target.close();
});
async function open(): Promise<void> {
  errors = vi.spyOn(console, 'error').mockImplementation(() => {});
  target = await inProcessTarget(() => T0);
}

const custom = (name: string, value: object) => ({ event: { type: 'CUSTOM', name, value } });
/** One record of every kind. */
const RECORDS: Record<string, unknown>[] = [
  { event: { type: 'RUN_STARTED', runId: 'r1', input: { messages: [{ id: 'm1', role: 'user', content: 'go' }] } } },
  { event: { type: 'TEXT_MESSAGE_START', messageId: 'm2', role: 'user', name: 'ann' } },
  { event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm2', delta: 'title' } },
  { event: { type: 'TEXT_MESSAGE_END', messageId: 'm2' } },
  { event: { type: 'TEXT_MESSAGE_START', messageId: 'm3', role: 'assistant' } },
  { event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm3', delta: 'text' } },
  { event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm3', delta: ' more' } },
  { event: { type: 'TEXT_MESSAGE_END', messageId: 'm3', metadata: { interlude: { replyTo: ['m2'] } } } },
  { event: { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' } },
  { event: { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"a":1}' } },
  { event: { type: 'TOOL_CALL_END', toolCallId: 'c1' } },
  { event: { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', content: 'done' } },
  custom('task:started', {
    task_id: 't1',
    run_id: 'x',
    description: 'deploy the thing',
    task_type: 'local_bash',
    started_at: 1,
  }),
  custom('task:progress', { task_id: 't1', summary: 'half', usage: { total_tokens: 1 }, last_tool_name: 'Bash' }),
  custom('request:opened', {
    request_id: 'q1',
    kind: 'permission',
    tool_name: 'Bash',
    title: 'may I',
    input: { command: 'ls' },
    expires_at: 2,
  }),
  custom('interlude:notice', { text: 'note', tone: 'info' }),
  custom('interlude:lost', { count: 1, reason: 'x' }),
  custom('runner:away', { since: 1, last_heard_at: 1, agent_goes_on: true }),
  custom('task:completed', {
    task_id: 't2',
    status: 'failed',
    exit_code: 1,
    error: 'e',
    output_file: '/f',
    ended_at: 3,
  }),
  { event: { type: 'RUN_FINISHED', runId: 'r1', metadata: { interlude: { foldedTaskIds: ['t2'] } } } },
  {
    event: {
      type: 'RUN_STARTED',
      runId: 'r2',
      metadata: { interlude: { turn: 'between-run', trigger: { kind: 'task', taskIds: ['t2'] } } },
    },
  },
  { event: { type: 'RUN_ERROR', runId: 'r2', message: 'bad', code: 'E' } },
  { event: { type: 'RUN_STARTED', runId: 'r3' } },
  { kind: 'log', log: { level: 'fatal', component: 'hook:Stop', message: 'exit 1', redacted: 1 } },
  {
    kind: 'log',
    log: {
      level: 'info',
      component: 'c',
      message: 'x',
      marker: { kind: 'level', level: 'info', previous: 'debug', by: 'ann' },
    },
  },
  {
    kind: 'status',
    status: {
      kind: 'claude',
      state: 'busy',
      agentGoesOn: false,
      everyMs: 1_000,
      runner: { id: 'r' },
      logLevel: 'info',
      logSwitch: { by: 'ann', until: 9, base: 'warn' },
    },
  },
  { kind: 'lost', lost: { count: 1, reason: 'full' } },
  { kind: 'novelty', what: 'is this' },
];

/** All copies of a value with one leaf or key replaced. */
function* variants(
  value: unknown,
  leaf: (one: unknown) => unknown[],
  keys: (key: string) => string[],
): Iterable<unknown> {
  if (typeof value !== 'object' || value === null) {
    yield* leaf(value);
    return;
  }
  for (const [key, one] of Object.entries(value)) {
    const without = Object.entries(value).filter(([name]) => name !== key);
    const put = (name: string, other: unknown) =>
      Array.isArray(value)
        ? value.map((entry, index) => (String(index) === key ? other : entry))
        : Object.fromEntries([...without, [name, other]]);
    for (const other of variants(one, leaf, keys)) yield put(key, other);
    if (!Array.isArray(value)) for (const name of keys(key)) yield put(name, one);
  }
}

/** Sends all records repeatedly, each as its next variant in a new session. */
async function sendAll(leaf: (one: unknown) => unknown[], keys: (key: string) => string[]): Promise<number> {
  const all = RECORDS.map((original) => [...variants(original, leaf, keys)] as Record<string, unknown>[]);
  const times = Math.max(...all.map((some) => some.length));
  for (let time = 0; time < times; time += 1) {
    const who = { agentId: `a${time % 4}`, sessionId: `s${time}` };
    const records = RECORDS.map((original, index) => {
      const fields = all[index]?.[time] ?? original;
      return record(index + 1, { event: undefined, ...who, ...fields });
    });
    const response = await sendEvents(target, { producer: { id: `p${time}`, epoch: 1 }, records });
    expect([response.status, await response.json()]).toMatchObject([200, { ackedSeq: RECORDS.length }]);
  }
  return all.flat().length;
}

/** Database errors, which would hide a record in quarantine. */
const unexpected = () => errors.mock.calls.map((call: unknown[]) => String(call[0]));

describe('reads and sweeps succeed before and after a restart with', () => {
  it('a lone surrogate in every string and key', async () => {
    await open();
    const halves = (one: unknown) => (typeof one === 'string' ? [`${one}\ud83d`] : []);
    expect(await sendAll(halves, (key) => [`${key}\ude00`])).toBeGreaterThan(100);
    expect(await exerciseServer(target)).toEqual([]);
    await target.restart();
    expect(await exerciseServer(target)).toEqual([]);
    expect(unexpected()).toEqual([]);
  });

  it('extreme numbers in place of numbers and texts', async () => {
    await open();
    const numbers = [2 ** 53, -(2 ** 53), 1e18, 1e308, -0.5, Number.MAX_SAFE_INTEGER];
    const leaf = (one: unknown) =>
      typeof one === 'number' || typeof one === 'boolean' ? numbers : typeof one === 'string' ? [2 ** 53] : [];
    expect(await sendAll(leaf, () => [])).toBeGreaterThan(50);
    expect(await exerciseServer(target)).toEqual([]);
    await target.restart();
    expect(await exerciseServer(target)).toEqual([]);
    expect(unexpected()).toEqual([]);
  });

  it('lists no invalid id', async () => {
    await open();
    const noIds = (one: unknown) => (typeof one === 'string' ? ['', '.', '..', 'x\u0000', 'x'.repeat(257)] : []);
    expect(await sendAll(noIds, () => [])).toBeGreaterThan(200);
    expect(await exerciseServer(target)).toEqual([]);
    expect(unexpected()).toEqual([]);
    const { rows } = await target.database.reader.execute(
      `SELECT id FROM tasks UNION SELECT run_id FROM tasks WHERE run_id IS NOT NULL UNION SELECT id FROM turns
       UNION SELECT message_id FROM obligations UNION SELECT id FROM sessions UNION SELECT id FROM agents
       UNION SELECT entity_id FROM events WHERE entity_id IS NOT NULL`,
    );
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.map(({ id }) => id).filter((id) => !isId(id))).toEqual([]);
  });

  it('any value in place of any other', async () => {
    const anything = fc.oneof(
      fc.constantFrom<unknown>(
        2 ** 53,
        -(2 ** 53),
        1e18,
        1e308,
        -0,
        null,
        '',
        '\ud83d',
        'x\u0000y',
        '__proto__',
        [[[[[]]]]],
        'y'.repeat(10_000),
      ),
      fc.constant(JSON.parse('{"__proto__":{"toString":1},"constructor":2}')),
      fc.jsonValue({ maxDepth: 2 }),
    );
    const change = fc.record({ at: fc.nat(RECORDS.length - 1), which: fc.nat(40), other: anything });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
        await open();
        const records = RECORDS.map((one, index) => record(index + 1, { event: undefined, ...one }));
        for (const { at, which, other } of changes) {
          const all = [
            ...variants(
              RECORDS[at],
              () => [other],
              (key) => (key === 'kind' ? [] : [`${key}\u0000`]),
            ),
          ];
          Object.assign(records[at] as object, all[which % all.length]);
        }
        const response = await sendEvents(target, { producer: { id: 'p', epoch: 1 }, records });
        expect(response.status).toBe(200);
        expect(await exerciseServer(target)).toEqual([]);
        expect(unexpected()).toEqual([]);
        vi.restoreAllMocks();
        await target.close();
      }),
      { numRuns: 25 },
    );
    await open();
  });
});

/**
 * Runs every read, every timer's sweep and every user action. None may fail, whatever was stored.
 *
 * @returns each response of 500 and above, and each sweep that threw
 */
async function exerciseServer(target: InProcessTarget): Promise<string[]> {
  const failures: string[] = [];
  const open = async (path: string, body?: object, method: 'GET' | 'POST' | 'PUT' = body ? 'POST' : 'GET') => {
    const response = await callRoute(target.context, method, path, { body });
    if (response.status < 500) return response;
    const { error } = (await response.json()) as ErrorBody;
    failures.push(`${method} ${path}: ${response.status} ${error.message}`);
    return response;
  };
  const ask = async (...asked: Parameters<typeof open>) => {
    const response = await open(...asked);
    if (!response.bodyUsed) await response.text();
  };
  const sweep = async (name: string, work: () => Promise<void>) => {
    await work().catch((error) => failures.push(`${name}: ${error}`));
  };

  const rows = async <Row>(sql: string) => (await target.database.reader.execute(sql)).rows as unknown as Row[];
  const sessions = await rows<{ id: string }>('SELECT id FROM sessions');
  const agents = await rows<{ id: string }>('SELECT id FROM agents');
  const tasks = await rows<{ session_id: string; id: string }>('SELECT session_id, id FROM tasks');
  const turns = await rows<{ session_id: string; id: string }>('SELECT session_id, id FROM turns');
  await ask('/sessions');
  await ask('/agents');
  for (const agent of agents.map(({ id }) => `/agents/${encodeURIComponent(id)}`)) {
    for (const what of ['', '/log-level', '/reply-obligations', '/logs/components', '/parked']) await ask(agent + what);
    for (const query of ['', 'q=e', 'regex=.', 'at=5', 'component=%EF%BF%BD', 'level=error'])
      await ask(`${agent}/logs?${query}`);
    await ask(`${agent}/logs/download`);
    await ask(`${agent}/log-level`, { level: 'debug', ttlSeconds: 1 }, 'PUT');
  }
  for (const { id } of sessions) {
    const session = `/sessions/${encodeURIComponent(id)}`;
    for (const what of ['', '/transcript', '/tasks', '/turn-at?at=1795170000001']) await ask(session + what);
    const turn = turns.find((one) => one.session_id === id);
    if (turn !== undefined) await ask(`${session}/transcript?${new URLSearchParams({ before: turn.id })}`);
    await ask(`${session}/messages`, { text: 'half \ud83d', clientId: crypto.randomUUID() });
    await ask(`${session}/interrupt`, {});
    await ask(`${session}/requests/q1`, { behavior: 'deny', message: 'half \ude00' });
    await ask(`${session}/obligations/m1/waive`, { reason: '\ud83d' });
  }
  for (const { session_id, id } of tasks) {
    const task = `/sessions/${encodeURIComponent(session_id)}/tasks/${encodeURIComponent(id)}`;
    await ask(task);
    await ask(`${task}/stop`, {});
  }

  for (const topic of [
    'fleet',
    ...sessions.map(({ id }) => `session:${id}`),
    ...agents.map(({ id }) => `logs:${id}`),
  ]) {
    const { status, body } = await open(`/stream?${new URLSearchParams({ topic, after: '0' })}`);
    if (status !== 200 || body === null) continue;
    const reader = new FrameReader(body);
    const frames = await reader.until((all) => all.some(({ event }) => event === 'up-to-date'));
    const entries = frames.flatMap((frame) =>
      frame.event === 'session-event' ? [{ position: frame.id ?? '0', ...frame.data }] : [],
    );
    await sweep(`folding ${topic}`, async () => {
      foldItems([], entries);
      foldTranscript(EMPTY_TRANSCRIPT, entries);
    });
    await reader.cancel();
  }
  for (const { id: agentId } of agents) {
    const { status, body } = await open(`/agents/${encodeURIComponent(agentId)}/commands?runner=r&startedAt=1`);
    if (status !== 200 || body === null) continue;
    const reader = new FrameReader(body);
    await reader.until((all) => all.some(({ event }) => event === 'up-to-date'));
    await reader.cancel();
  }
  let laterMs = 0;
  const now = () => target.context.now() + laterMs;
  const server = { database: target.database, now, steady: now };
  // reuse one hub, because messages expire only on a continuous clock
  const hub = new CommandHub(server);
  for (laterMs of [0, 20_000, 40_000, 3_600_000, 30 * 86_400_000]) {
    await sweep('the sweep of commands', () => hub.sweep());
    const keeper = new LogKeeper(server, { maxAgeMs: 86_400_000, maxBytes: 1e9 });
    await sweep('indexing', () => keeper.indexAll());
    await sweep('retention', () => keeper.removeOld());
    keeper.close();
  }
  target.context.commands.close();
  return failures;
}
