import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { InboxList } from '@interlude/protocol/inbox';
import { UNDELIVERED_MS } from '@interlude/protocol/limits';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { markUndelivered } from '@/lib/server/commands/overdue';
import { acknowledge } from '@/lib/server/commands/settle-command';
import { hashOf } from '../../support/attachments';
import { DAY_MS, RetainedServer } from '../../support/retained-server';
import { userTurn } from '../../support/turn-events';

let server: RetainedServer;
beforeEach(async () => {
  server = await RetainedServer.start();
  await server.write([{ type: 'CUSTOM', name: 'session:started', value: {} }]);
});
afterEach(async () => {
  vi.restoreAllMocks();
  expect(await server.faults()).toEqual([]);
  await server.close();
});

const later = (days: number) => server.later(days);
const acks = (id: string, state: 'done' | 'failed' = 'done') =>
  server.target.database.writes.run((transaction) => acknowledge(transaction, 'a1', id, { state }, null, server.now));
const ids = async (table: string, column = 'id') =>
  (await server.rows(`SELECT ${column} AS id FROM ${table} ORDER BY 1`)).map(({ id }) => id);

describe('commands', () => {
  const interrupts = async (clientId: string, turnId: string) => {
    await server.write([{ type: 'RUN_STARTED', threadId: 's1', runId: turnId }]);
    const { answer } = await server.ask('POST', '/sessions/s1/interrupt', { turnId, clientId });
    return answer.commandId as string;
  };

  test('are removed with their requests once ended, while younger and open ones stay', async () => {
    const old = await interrupts('c1', 'r1');
    await acks(old);
    await server.write([{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r1' }]);
    const { answer } = await server.ask('POST', '/sessions/s1/messages', { text: 'Wait', clientId: 'c2' });
    await later(6);
    const young = await interrupts('c3', 'r2');
    await acks(young);
    await later(5);
    await server.retain();
    expect(await ids('commands')).toEqual([answer.messageId, young].sort());
    expect(await ids('asks', 'client_id')).toEqual(['c2', 'c3']);
    // unknown again, the same id is new
    await expect(acks(old)).rejects.toMatchObject({ code: 'not_found' });
    const again = await server.ask('POST', '/sessions/s1/interrupt', { clientId: 'c1' });
    expect(again).toMatchObject({ status: 202, answer: { state: 'queued' } });
  });

  test('stay if they are the newest log level of an agent or wake rule of a session', async () => {
    await server.write([{ type: 'CUSTOM', name: 'session:started', value: {} }], 's2');
    const asked = async (path: string, body: object) => {
      const { status, answer } = await server.ask('PUT', path, body);
      expect([path, status, answer]).toEqual([path, 202, expect.anything()]);
      await acks(answer.commandId);
      return answer.commandId as string;
    };
    await asked('/agents/a1/log-level', { level: 'debug' });
    await asked('/sessions/s1/wake-rule', { when: 'never', clientId: 'c1' });
    const counting = [
      await asked('/agents/a1/log-level', { level: 'warn' }),
      await asked('/sessions/s1/wake-rule', { when: 'command-ended', clientId: 'c2' }),
      await asked('/sessions/s2/wake-rule', { when: 'never' }),
    ];
    await later(11);
    await server.retain();
    expect(await ids('commands')).toEqual(counting.sort());
    expect(await ids('asks', 'client_id')).toEqual(['c2']);
    // and they decide whether an answer is valid
    expect((await server.ask('GET', '/agents/a1/log-level')).answer.desired).toMatchObject({ level: 'warn' });
  });

  test('are removed in slices, each once, when there are many', async () => {
    await server.change(`INSERT INTO commands (id, position, agent_id, session_id, type, body, state, created_at, expires_at)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
      SELECT 'n' || i, 1, 'a1', 's1', 'interrupt', '{}', iif(i = 500, 'queued', 'done'), 0, 9e15 FROM n`);
    await later(11);
    await server.retain();
    expect(await ids('commands')).toEqual(['n500']);
  });

  test('are removed by size like turns', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {});
    await acks(await interrupts('c1', 'r1'));
    await server.write(userTurn('r2', 'Go?', 'Gone.'));
    await later(2);
    await server.retain({ INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_RETENTION_MIB: '0.001' });
    expect(await ids('commands')).toEqual([]);
    expect(said.mock.calls).toEqual([[expect.stringContaining('nothing more can be removed')]]);
  });

  test('stay until they expire', async () => {
    await acks(await interrupts('c1', 'r1'));
    await later(4_000);
    await server.retain({ INTERLUDE_RETENTION_DAYS: 'forever' });
    expect(await ids('commands')).toHaveLength(1);
  });
});

test('a request without a command is removed by its own age, and is new when sent again', async () => {
  const waive = async (id: string) => {
    await server.write([
      { type: 'TEXT_MESSAGE_START', messageId: id, role: 'user' },
      { type: 'TEXT_MESSAGE_END', messageId: id },
    ]);
    return server.ask('POST', `/sessions/s1/obligations/${id}/waive`, { clientId: `waive ${id}` });
  };
  expect((await waive('m1')).status).toBe(200);
  await later(6);
  await waive('m2');
  await later(5);
  await server.retain();
  expect(await ids('asks', 'client_id')).toEqual(['waive m2']);
  expect(await waive('m2')).toMatchObject({ status: 200, answer: { state: 'waived' } });
  const again = await server.ask('POST', '/sessions/s1/obligations/m1/waive', { clientId: 'waive m1' });
  expect([404, 409]).toContain(again.status);
});

test('insights are removed once seen or harmless, and unseen failures stay and count', async () => {
  const says = (signal: string, level = 'info') =>
    server.send([
      { kind: 'log', log: { level, component: 'c', message: signal, insight: { signal, source: 's', value: 1 } } },
    ]);
  await says('seen', 'error');
  const [{ position } = {}] = await server.rows('SELECT position FROM insights');
  await says('unseen', 'error');
  await says('signal');
  const looked = await server.ask('POST', '/agents/a1/insights/seen', { upTo: String(position) });
  expect(looked.answer).toMatchObject({ seen: 1, unseen: 1 });
  await later(11);
  await says('young');
  await server.retain();
  expect(await ids('insights', 'signal')).toEqual(['unseen', 'young']);
  const counted = async () => (await server.ask('GET', '/agents/a1')).answer.agent.insightCount;
  expect(await counted()).toBe(1);
  const [last] = await server.rows('SELECT max(position) AS position FROM insights');
  const { answer } = await server.ask('POST', '/agents/a1/insights/seen', { upTo: String(last?.position) });
  expect(answer).toMatchObject({ seen: 1, unseen: 0 });
  expect(await counted()).toBe(0);
});

test('webhook deliveries are removed once settled', async () => {
  await server.change(`INSERT INTO webhook_deliveries (position, item_id, kind, state, created_at, due_at)
    VALUES (1, 'old', 'failure', 'delivered', 0, 0), (2, 'open', 'failure', 'waiting', 0, 9e15)`);
  await later(11);
  await server.retain();
  expect(await ids('webhook_deliveries', 'item_id')).toEqual(['open']);
});

describe('attachments', () => {
  const attach = async (text: string) => {
    const bytes = new TextEncoder().encode(text);
    const hash = hashOf(bytes);
    await server.change(`INSERT INTO attachments (session_id, hash, name, media_type, bytes, sent_at)
      VALUES ('s1', '${hash}', 'a', 'text/plain', ${bytes.byteLength}, ${server.now})`);
    await server.change(`INSERT INTO attachment_parts (session_id, hash, part, bytes)
      VALUES ('s1', '${hash}', 0, CAST('${text}' AS BLOB))`);
    return hash;
  };
  /** Sends the attachments with a message that the agent answers in its own turn. */
  const says = async (runId: string, hashes: readonly string[], isAnswered = true) => {
    const attachments = hashes.map((hash) => ({ hash, name: 'a' }));
    const { answer } = await server.ask('POST', '/sessions/s1/messages', {
      text: 'Look',
      clientId: runId,
      attachments,
    });
    const interlude = { turn: 'user' as const, userMessageIds: [answer.messageId] };
    if (isAnswered) {
      await server.write([
        { type: 'RUN_STARTED', threadId: 's1', runId, metadata: { interlude } },
        { type: 'RUN_FINISHED', threadId: 's1', runId, metadata: { interlude } },
      ]);
    }
    return answer.messageId as string;
  };

  test('are removed with the last message that names them, in slices, with all their parts', async () => {
    const old = await Promise.all(['1', '2', '3', '4', '5', '6'].map((text) => attach(text)));
    const again = await attach('again');
    await says('r1', [...old.slice(0, 5), again]);
    await says('r2', old.slice(5));
    await later(6);
    const young = await attach('young');
    await says('r3', [young, again]);
    await later(5);
    await server.retain();
    expect(await ids('attachments', 'hash')).toEqual([young, again].sort());
    expect(await ids('attachment_parts', 'hash')).toEqual([young, again].sort());
    expect((await server.ask('GET', `/attachments/${old[0]}?session=s1`)).status).toBe(404);
    await later(11);
    await server.retain();
    expect(await ids('attachments', 'hash')).toEqual([]);
  });

  test('stay when a later turn shows their message, even after a clock step', async () => {
    server.now -= 300 * DAY_MS;
    const hash = await attach('kept');
    const messageId = await says('r1', [hash], false);
    server.now += 300 * DAY_MS;
    await server.write(userTurn('r2', 'Go?', 'Gone.'));
    await later(11);
    const interlude = { turn: 'user' as const, userMessageIds: [messageId] };
    await server.write([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r3', metadata: { interlude } }]);
    await server.write([{ type: 'RUN_FINISHED', threadId: 's1', runId: 'r3', metadata: { interlude } }]);
    await later(2);
    await server.retain();
    const [session] = await server.rows('SELECT removed_up_to FROM sessions');
    const [named] = await server.rows('SELECT named_position FROM attachments');
    expect(Number(session?.removed_up_to)).toBeGreaterThan(Number(named?.named_position));
    const page = await server.page();
    expect(JSON.stringify(page?.turns.find(({ id }) => id === 'r3')?.items)).toContain(hash);
    expect(await ids('attachments', 'hash')).toEqual([hash]);
  });

  test('stay while their message has no removed turn', async () => {
    const hash = await attach('open');
    await says('r1', [hash], false);
    await later(30);
    await server.retain();
    expect(await ids('attachments', 'hash')).toEqual([hash]);
  });
});

test('a row that cannot be removed is logged and skipped, and the others are removed', async () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {});
  await server.change(`INSERT INTO webhook_deliveries (position, item_id, kind, state, created_at, due_at)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
    SELECT -i, 'i' || i, 'failure', 'delivered', 0, 0 FROM n`);
  await server.change('UPDATE webhook_deliveries SET position = position + 301');
  await server.change('UPDATE counter SET position = 400');
  await later(0);
  await server.change(`CREATE TRIGGER stuck BEFORE DELETE ON webhook_deliveries WHEN old.item_id IN ('i7', 'i250')
    BEGIN SELECT RAISE(ABORT, 'stuck'); END`);
  await later(11);
  await server.retain();
  expect(await ids('webhook_deliveries', 'item_id')).toEqual(['i250', 'i7']);
  const lines = said.mock.calls.map(([line]) => String(line));
  expect(lines.map((line) => /^\[interlude\] webhook delivery "(\d+)" is skipped/.exec(line)?.[1])).toEqual([
    '51',
    '294',
  ]);
});

describe('inbox items', () => {
  const asks = (name: string, id: string, value = {}): AgUiEvent => ({
    type: 'CUSTOM',
    name,
    value: { request_id: id, ...value },
  });
  const kinds = async () =>
    (await server.rows('SELECT kind, done_at FROM inbox ORDER BY kind')).map(({ kind }) => kind);

  test('are removed when done, and stay when open or able to reopen', async () => {
    await server.write([{ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' }]);
    await server.write(['q1', 'q2'].map((id) => asks(CUSTOM.requestOpened, id, { title: `May ${id}?` })));
    await server.write([asks(CUSTOM.requestResolved, 'q1', { outcome: 'allowed' })]);
    await server.write([{ type: 'RUN_ERROR', message: 'It broke' }], 's2');
    const { items } = (await server.ask('GET', '/inbox')).answer as InboxList;
    const failure = items
      .filter(({ kind }) => kind === 'failure')
      .map(({ id, updatedPosition }) => ({ id, updatedPosition }));
    expect((await server.ask('POST', '/inbox/marks', { items: failure, mark: 'seen' })).status).toBe(200);
    expect(await kinds()).toEqual(['failure', 'permission', 'permission']);
    await later(6);
    await server.write([asks(CUSTOM.requestResolved, 'q2', { outcome: 'denied' })]);
    await later(5);
    await server.retain();
    expect(await kinds()).toEqual(['failure', 'permission']);
    await later(6);
    await server.retain();
    expect(await kinds()).toEqual(['failure']);
    // and it reopens
    await server.write([{ type: 'RUN_ERROR', message: 'Again' }], 's2');
    expect((await server.ask('GET', '/inbox')).answer.items).toMatchObject([{ kind: 'failure' }]);
  });

  test('about an undelivered result are done once its task is removed', async () => {
    const task = (name: string, value = {}): AgUiEvent => ({
      type: 'CUSTOM',
      name,
      value: { task_id: 'b1', ...value },
    });
    const [begins, ends] = ['RUN_STARTED', 'RUN_FINISHED'].map((type) => ({ type, threadId: 's1', runId: 'r1' }));
    await server.write([begins as AgUiEvent, task(CUSTOM.taskStarted), ends as AgUiEvent]);
    await server.write([task('task:completed', { status: 'failed' })]);
    server.now += UNDELIVERED_MS;
    await server.target.database.writes.run((transaction) =>
      markUndelivered(transaction, { now: server.now, waitsMs: UNDELIVERED_MS }),
    );
    const open = async () => ((await server.ask('GET', '/inbox')).answer as InboxList).items.map(({ kind }) => kind);
    expect(await open()).toEqual(['undelivered']);
    await later(6);
    await server.write(userTurn('r2', 'u2', 'Go on'));
    await later(6);
    await server.retain();
    expect(await open()).toEqual([]);
    await later(11);
    await server.retain();
    expect(await kinds()).toEqual([]);
  });
});
