import type { AuditCheck, AuditEntry, AuditPage } from '@interlude/protocol/access';
import type { MessageResponse } from '@interlude/protocol/commands';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { GENESIS_HASH, hashOf } from '@/lib/server/access/audit';
import { ROUTES } from '@/lib/server/routes';
import { AccessStage, fillAudit, type Headers } from '../support/access-stage';
import { type BusyAgent, busyAgent } from '../support/busy-agent';

afterEach(() => void vi.restoreAllMocks());

async function stageOf(): Promise<AccessStage> {
  const stage = await AccessStage.start({ env: { INTERLUDE_EMBED_ORIGINS: CONSOLE } });
  onTestFinished(() => stage.close());
  return stage;
}

async function entries(stage: AccessStage, query = ''): Promise<AuditEntry[]> {
  return (await stage.ask<AuditPage>(`/audit?limit=1000${query}`)).entries;
}

/** Runs SQL directly, like someone with the file. */
function sql(stage: AccessStage, text: string, args: (string | number)[] = []): Promise<unknown> {
  return stage.parts.database.writes.run((transaction) => transaction.execute({ sql: text, args }));
}

const check = (stage: AccessStage) => stage.ask<AuditCheck>('/audit/check');

/** Every action with its request, in a possible order. */
const CONSOLE = 'https://console.example.com';

const ACTS: Record<string, (ids: BusyAgent) => { path: string; method?: string; body?: unknown; type?: string }> = {
  'create token': () => ({ path: '/tokens', body: { role: 'viewer' } }),
  'create embed': () => ({ path: '/embed-tokens', body: { fleet: true, parentOrigin: CONSOLE } }),
  'create sign-in link': () => ({ path: '/sign-in-codes', body: {} }),
  'send message': ({ sessionId }) => ({
    path: `/sessions/${sessionId}/messages`,
    body: { text: 'Hello', clientId: 'c' },
  }),
  'attach file': ({ sessionId }) => ({
    path: `/sessions/${sessionId}/attachments?name=a.txt`,
    body: new TextEncoder().encode('words'),
    type: 'text/plain',
  }),
  'set wake rule': ({ sessionId }) => ({
    path: `/sessions/${sessionId}/wake-rule`,
    method: 'PUT',
    body: { when: 'never' },
  }),
  'answer request': ({ sessionId, requestId }) => ({
    path: `/sessions/${sessionId}/requests/${requestId}`,
    body: { behavior: 'deny' },
  }),
  'wake for task': ({ sessionId, taskId }) => ({ path: `/sessions/${sessionId}/tasks/${taskId}/wake`, body: {} }),
  'stop task': ({ sessionId, taskId }) => ({ path: `/sessions/${sessionId}/tasks/${taskId}/stop`, body: {} }),
  interrupt: ({ sessionId }) => ({ path: `/sessions/${sessionId}/interrupt`, body: {} }),
  'set log level': ({ agentId }) => ({ path: `/agents/${agentId}/log-level`, method: 'PUT', body: { level: 'debug' } }),
  'mark inbox': ({ inboxId }) => ({ path: '/inbox/marks', body: { ids: [inboxId], mark: 'snoozed', until: 1 } }),
  'arrange session': ({ sessionId }) => ({
    path: `/sessions/${sessionId}/arrangement`,
    method: 'PUT',
    body: { name: 'Another name' },
  }),
  'waive reply': ({ sessionId, messageId }) => ({
    path: `/sessions/${sessionId}/obligations/${messageId}/waive`,
    body: {},
  }),
  'accept reply': ({ sessionId, messageId }) => ({
    path: `/sessions/${sessionId}/obligations/${messageId}/accept`,
    body: { candidateId: 'none' },
  }),
  'see insights': ({ agentId, position }) => ({ path: `/agents/${agentId}/insights/seen`, body: { upTo: position } }),
  'assign record': ({ agentId, sessionId, position }) => ({
    path: `/agents/${agentId}/parked/${position}/assign`,
    body: { sessionId },
  }),
  'discard record': ({ agentId, position }) => ({ path: `/agents/${agentId}/parked/${position}/discard`, body: {} }),
  'run by AG-UI': ({ agentId, sessionId }) => ({
    path: `/agui/${agentId}`,
    body: { threadId: sessionId, runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Hello' }] },
  }),
  'connect by AG-UI': ({ agentId, sessionId }) => ({
    path: `/agui/${agentId}/connect`,
    body: { threadId: sessionId, runId: 'r', messages: [] },
  }),
  'test webhook': () => ({ path: '/webhook/test', body: {} }),
  'end session': ({ sessionId }) => ({ path: `/sessions/${sessionId}/end`, body: {} }),
  'retire agent': ({ agentId }) => ({ path: `/agents/${agentId}/retirement`, method: 'PUT', body: { retired: true } }),
  'revoke credential': () => ({ path: '/credentials/none', method: 'DELETE' }),
  'change member': () => ({ path: '/members/none', method: 'PUT', body: { blocked: true } }),
  'sign out elsewhere': () => ({ path: '/me/sign-ins', method: 'DELETE' }),
};

function act(stage: AccessStage, action: string, ids: BusyAgent, as: Headers = stage.owner): Promise<Response> {
  const { path, method = 'POST', body, type } = (ACTS[action] as (typeof ACTS)[string])(ids);
  const headers: Headers = type === undefined ? {} : { 'content-type': type };
  return stage.send(`/api/v1${path}`, { method, body, as, headers });
}

describe('the audit', () => {
  test('records each action once, with actor, action and target', async () => {
    const named = ROUTES.flatMap((route) => (route.access === 'open' || route.action === null ? [] : [route.action]));
    expect(Object.keys(ACTS).sort()).toEqual([...new Set(named)].sort());
    const stage = await stageOf();
    const ids = await busyAgent(stage, 'a');
    const { id: credentialId, ...operator } = await stage.token({ role: 'admin', name: 'Ada’s script' });
    for (const action of Object.keys(ACTS)) {
      const before = (await check(stage)).entries;
      const response = await act(stage, action, ids, operator);
      await response.body?.cancel();
      const added = (await entries(stage)).filter(({ number }) => number > before);
      // Once, for any number of undone attempts and transactions.
      expect.soft([action, response.status, added.length]).toEqual([action, response.status, 1]);
      const path = ACTS[action]?.(ids).path.replace(/\?.*/, '') ?? '';
      for (const entry of added) {
        expect(entry).toMatchObject({
          actor: 'Ada’s script',
          actorKind: 'human',
          role: 'admin',
          credentialId,
          action,
          // The target is the created resource.
          target: expect.stringMatching(new RegExp(`^/api/v1${path}(/(token|embed|code)-[0-9a-f-]{36})?$`)),
          digest: expect.stringMatching(/^[0-9a-f]{64}$/),
          agentId: /^\/(agents|agui)\//.test(path) ? ids.agentId : null,
          sessionId: path.startsWith('/sessions/') ? ids.sessionId : null,
          result: response.ok ? 'done' : expect.stringMatching(/^(conflict|not_found|forbidden)$/),
        });
      }
    }
    expect((await check(stage)).brokenAt).toBeNull();
  });

  test('records no action of a runner', async () => {
    const stage = await stageOf();
    const ids = await busyAgent(stage, 'a');
    const { id: _, ...runner } = await stage.token({ agent: ids.agentId });
    const before = (await check(stage)).entries;
    const record = { seq: 1, kind: 'status', agentId: ids.agentId, occurredAt: 1, status: {} };
    const producer = { id: `${ids.agentId}/other`, epoch: 1 };
    await stage.ask('/events', { method: 'POST', as: runner, body: { producer, records: [record] } });
    const commands = await stage.stream(`/agents/${ids.agentId}/commands?runner=r&startedAt=1`, runner);
    await commands.frame('up-to-date');
    const ack = `/agents/${ids.agentId}/commands/${ids.commandId}/ack`;
    await stage.ask(ack, { method: 'POST', as: runner, body: { state: 'delivered', runner: 'r', startedAt: 1 } });
    await stage.ask(`/agents/${ids.agentId}/reply-obligations`, { as: runner });
    expect((await check(stage)).entries).toBe(before);
  });

  test('records refused requests, but not malformed ones', async () => {
    const stage = await stageOf();
    const ids = await busyAgent(stage, 'a');
    await busyAgent(stage, 'b');
    const scope = { kind: 'session', sessionId: ids.sessionId } as const;
    const { secret, id } = await stage.credential({ kind: 'embed', role: 'operator', scope, name: 'A console' });
    const as = { authorization: `Bearer ${secret}` };
    const before = (await check(stage)).entries;
    expect(await stage.status('/sessions/session-b/interrupt', { method: 'POST', as, body: {} })).toBe(404);
    expect(await stage.status(`/sessions/${ids.sessionId}/messages`, { method: 'POST', as, body: { text: 1 } })).toBe(
      400,
    );
    const added = (await entries(stage)).filter(({ number }) => number > before);
    expect(added).toMatchObject([
      { credentialId: id, actorKind: 'embed', action: 'interrupt', sessionId: 'session-b', result: 'not_found' },
    ]);
  });

  test('records requests that the role does not permit', async () => {
    const stage = await stageOf();
    const ids = await busyAgent(stage, 'a');
    const { id, ...viewer } = await stage.token({ role: 'viewer' });
    expect(await stage.status(`/sessions/${ids.sessionId}/interrupt`, { method: 'POST', as: viewer, body: {} })).toBe(
      403,
    );
    expect(await entries(stage, `&credential=${id}`)).toMatchObject([{ action: 'interrupt', result: 'forbidden' }]);
  });

  test('records sign-in and sign-out without any secret', async () => {
    const stage = await stageOf();
    const code = await stage.code();
    const signedIn = await stage.send(`/sign-in?token=${code}`, { as: {} });
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    await stage.send('/sign-out', { method: 'POST', as: { cookie, 'sec-fetch-site': 'same-origin' } });
    const all = await entries(stage);
    expect(all.map(({ action }) => action)).toEqual(['sign out', 'sign in', 'create sign-in link']);
    expect(JSON.stringify(all)).not.toContain(code.slice(4));
  });
});

describe('a transaction', () => {
  test('commits the action with its entry or neither, undoing an action without an entry', async () => {
    const stage = await stageOf();
    const { sessionId } = await busyAgent(stage, 'a');
    vi.spyOn(console, 'error').mockImplementation(() => {});
    await sql(stage, `CREATE TRIGGER no_more BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no more'); END`);
    const count = async () =>
      (await stage.ask<{ session: { updatedPosition: string } }>(`/sessions/${sessionId}`)).session;
    const before = await count();
    const body = { text: 'Not to be sent', clientId: 'c' };
    expect(await stage.status(`/sessions/${sessionId}/messages`, { method: 'POST', body })).toBeGreaterThanOrEqual(500);
    expect(await stage.status('/tokens', { method: 'POST', body: {} })).toBeGreaterThanOrEqual(400);
    expect(await count()).toEqual(before);
    await sql(stage, 'DROP TRIGGER no_more');
    const answered = await stage.ask<MessageResponse>(`/sessions/${sessionId}/messages`, { method: 'POST', body });
    expect(answered.delivery).toBe('queued');
    expect((await check(stage)).brokenAt).toBeNull();
  });

  test('writes no entry for an action that was rolled back', async () => {
    const stage = await stageOf();
    const { sessionId } = await busyAgent(stage, 'a');
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const before = (await check(stage)).entries;
    await sql(stage, `CREATE TRIGGER no_more BEFORE INSERT ON commands BEGIN SELECT RAISE(ABORT, 'no more'); END`);
    const body = { text: 'Not to be sent', clientId: 'c' };
    expect(await stage.status(`/sessions/${sessionId}/messages`, { method: 'POST', body })).toBeGreaterThanOrEqual(500);
    expect((await check(stage)).entries).toBe(before);
  });

  test('writes entries only for the successful actions of a group', async () => {
    const stage = await stageOf();
    const { sessionId } = await busyAgent(stage, 'a');
    const before = (await check(stage)).entries;
    const requests = Array.from({ length: 30 }, (_, index) =>
      index % 3 === 0
        ? stage.status(`/sessions/${sessionId}/tasks/none-${index}/stop`, { method: 'POST', body: {} })
        : stage.status(`/sessions/${sessionId}/messages`, {
            method: 'POST',
            body: { text: 'x', clientId: `c${index}` },
          }),
    );
    const statuses = await Promise.all(requests);
    const added = (await entries(stage)).filter(({ number }) => number > before);
    expect(added.filter(({ result }) => result === 'done')).toHaveLength(statuses.filter((one) => one === 202).length);
    // The first failure; the others are counted.
    expect(statuses.filter((one) => one === 404).length).toBeGreaterThan(1);
    expect(added.filter(({ result }) => result !== 'done')).toHaveLength(1);
    expect(added.map(({ number }) => number)).toEqual(added.map((_, index) => before + added.length - index));
    expect((await check(stage)).brokenAt).toBeNull();
  });
});

describe('the hash chain', () => {
  async function chained(): Promise<AccessStage> {
    const stage = await stageOf();
    const { agentId } = await busyAgent(stage, 'a');
    for (const level of ['debug', 'info', 'warn', 'error', 'info']) {
      await stage.ask(`/agents/${agentId}/log-level`, { method: 'PUT', body: { level } });
    }
    const { entries: count, head, brokenAt } = await check(stage);
    const newest = (await entries(stage))[0];
    expect([count > 5, brokenAt, head]).toEqual([true, null, newest?.hash]);
    return stage;
  }

  test('rejects updates of an entry', async () => {
    const stage = await chained();
    await expect(sql(stage, "UPDATE audit SET actor = 'somebody else'")).rejects.toThrow(/never changed/);
  });

  const COLUMNS = Object.keys({
    at: 0,
    actor: 0,
    actor_kind: 0,
    role: 0,
    credential_id: 0,
    action: 0,
    agent_id: 0,
    session_id: 0,
    target: 0,
    digest: 0,
    origin: 0,
    result: 0,
    times: 0,
    hash: 0,
  });
  test.each(COLUMNS)('detects a change of %s made behind the trigger', async (column) => {
    const stage = await chained();
    await sql(stage, 'DROP TRIGGER audit_is_kept');
    await sql(stage, `UPDATE audit SET ${column} = '2' WHERE number = 3`);
    expect((await check(stage)).brokenAt).toBe(3);
  });

  test('has a test for every column', async () => {
    const stage = await stageOf();
    const { rows } = await stage.parts.database.reader.execute("SELECT name FROM pragma_table_info('audit')");
    expect(rows.map(({ name }) => name).sort()).toEqual(['number', ...COLUMNS].sort());
  });

  test('detects removed, inserted and reordered entries', async () => {
    const out = await chained();
    await sql(out, 'DELETE FROM audit WHERE number = 3');
    expect((await check(out)).brokenAt).toBe(3);

    const closed = await chained();
    await sql(closed, 'DROP TRIGGER audit_is_kept');
    await sql(closed, 'DELETE FROM audit WHERE number = 3');
    await sql(closed, 'UPDATE audit SET number = number - 1 WHERE number > 3');
    expect((await check(closed)).brokenAt).toBe(3);

    const swapped = await chained();
    await sql(swapped, 'DROP TRIGGER audit_is_kept');
    for (const [from, to] of [
      [3, -3],
      [4, 3],
      [-3, 4],
    ] as const) {
      await sql(swapped, 'UPDATE audit SET number = ? WHERE number = ?', [to, from]);
    }
    expect((await check(swapped)).brokenAt).toBe(3);
  });

  test('detects an entry appended without the previous hash', async () => {
    const stage = await chained();
    const [newest] = (await entries(stage)) as [AuditEntry];
    const { hash: _, ...forged } = { ...newest, number: newest.number + 1, actor: 'somebody else' };
    const columns =
      '(number, at, actor, actor_kind, role, credential_id, action, target, digest, origin, result, hash)';
    const { number, at, actor, actorKind, role, credentialId, action, target, digest, origin, result } = forged;
    const values = [number, at, actor, actorKind, role, credentialId, action, target, digest, origin, result];
    await sql(stage, `INSERT INTO audit ${columns} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, [
      ...values,
      hashOf({ ...forged, agentId: null, sessionId: null }, GENESIS_HASH),
    ]);
    expect((await check(stage)).brokenAt).toBe(number);
    // Later entries don't repair it.
    await stage.ask('/tokens', { method: 'POST', body: { role: 'viewer' } });
    expect((await check(stage)).brokenAt).toBe(number);
  });

  test('has another head when it was shortened, for anyone who kept the old head', async () => {
    const stage = await chained();
    const { head, entries: count } = await check(stage);
    await sql(stage, 'DELETE FROM audit WHERE number = ?', [count]);
    const after = await check(stage);
    expect([after.brokenAt, after.entries, after.head === head]).toEqual([null, count - 1, false]);
  });
});

describe('the audit API', () => {
  test('exports every entry in order while others act', async () => {
    const stage = await stageOf();
    const { sessionId } = await busyAgent(stage, 'a');
    await fillAudit(stage, 1_600);
    const before = (await check(stage)).entries;
    let isOver = false;
    const acting = (async () => {
      for (let index = 0; !isOver; index += 1) {
        await stage.ask(`/sessions/${sessionId}/messages`, {
          method: 'POST',
          body: { text: 'x', clientId: `m${index}` },
        });
      }
    })();
    const text = await (await stage.send('/api/v1/audit/export')).text();
    isOver = true;
    await acting;
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditEntry);
    expect(lines.length).toBeGreaterThanOrEqual(before);
    expect(lines.map(({ number }) => number)).toEqual(lines.map((_, index) => index + 1));
    const all = (await entries(stage)).toReversed();
    expect(lines.slice(-500, -1)).toEqual(
      all.filter(({ number }) => number > lines.length - 500 && number < lines.length),
    );
    // The export alone suffices to verify it.
    let head = GENESIS_HASH;
    for (const { hash, ...entry } of lines) {
      expect(hashOf(entry, head)).toBe(hash);
      head = hash;
    }
  });

  test('filters exactly, page by page', async () => {
    const stage = await stageOf();
    const ids = [await busyAgent(stage, 'a'), await busyAgent(stage, 'b')] as const;
    const { id, ...operator } = await stage.token({ role: 'operator', name: 'Grace' });
    for (const { agentId, sessionId } of ids) {
      await stage.ask(`/agents/${agentId}/log-level`, { method: 'PUT', as: operator, body: { level: 'warn' } });
      await stage.status(`/sessions/${sessionId}/tasks/none/stop`, { method: 'POST', as: operator, body: {} });
    }
    const all = await entries(stage);
    const filters: [string, (entry: AuditEntry) => boolean][] = [
      ['actor=Grace', ({ actor }) => actor === 'Grace'],
      ['action=set+log+level', ({ action }) => action === 'set log level'],
      ['agent=agent-a', ({ agentId }) => agentId === 'agent-a'],
      ['session=session-b', ({ sessionId }) => sessionId === 'session-b'],
      [`credential=${id}`, ({ credentialId }) => credentialId === id],
      ['result=not_found', ({ result }) => result === 'not_found'],
      [
        'actor=Grace&result=done&agent=agent-b',
        ({ actor, result, agentId }) => actor === 'Grace' && result === 'done' && agentId === 'agent-b',
      ],
      ['actor=grace', () => false],
      ["actor=x'+OR+1=1+--", () => false],
    ];
    for (const [query, passes] of filters) {
      const expected = all.filter(passes);
      const paged: AuditEntry[] = [];
      for (let before: number | null = null; ; ) {
        const place: string = before === null ? '' : `&before=${before}`;
        const page: AuditPage = await stage.ask(`/audit?limit=2&${query}${place}`);
        paged.push(...page.entries);
        before = page.next;
        if (before === null) break;
      }
      expect([query, paged]).toEqual([query, expected]);
      const text = await (await stage.send(`/api/v1/audit/export?${query}`)).text();
      expect([
        query,
        text
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line)),
      ]).toEqual([query, expected.toReversed()]);
    }
    expect(await stage.status('/audit?actr=Grace')).toBe(400);
  });
});
