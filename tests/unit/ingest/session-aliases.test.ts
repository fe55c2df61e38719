import type { IngestResponse } from '@interlude/protocol/envelope';
import type { AgentDetail, ObligationList, RequestDetail, SessionList } from '@interlude/protocol/read-models';
import { requestDigest } from '@interlude/protocol/request-digest';
import type { InStatement } from '@libsql/client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { JobOptions, WriteJob } from '@/db/writes';
import { keyedDigest } from '@/lib/server/access/secret';
import { AccessStage, type Headers } from '../../support/access-stage';
import { bytesOf, hashOf } from '../../support/attachments';
import { record } from '../../support/ingest-target';

const FILE = bytesOf('notes');

let stage: AccessStage;
/** Runners of two agents that do not know each other. */
let first: Headers;
let second: Headers;
beforeAll(async () => {
  stage = await AccessStage.start();
  first = await stage.token({ role: 'runner', agent: 'first' });
  second = await stage.token({ role: 'runner', agent: 'second' });
});
afterAll(() => stage.close());

const seqs = new Map<string, number>();
async function send(as: Headers, agentId: string, sessionId: string, ...fields: object[]) {
  const records = fields.map((one) => {
    seqs.set(agentId, (seqs.get(agentId) ?? 0) + 1);
    return record(seqs.get(agentId) ?? 0, { agentId, sessionId, ...one });
  });
  const body = { producer: { id: `${agentId}/1`, epoch: 1 }, records };
  return stage.ask<IngestResponse>('/events', { method: 'POST', as, body });
}
const starts = (runId: string) => ({ event: { type: 'RUN_STARTED', threadId: 's', runId } });
const says = (id: string, delta: string) => ({
  event: { type: 'TEXT_MESSAGE_CHUNK', messageId: id, role: 'assistant', delta },
});
const sessionsOf = async (agent: string) =>
  (await stage.ask<SessionList>(`/sessions?agent=${agent}`)).sessions.map(({ id }) => id);

describe('two runners with the same session id', () => {
  test('are both accepted, and neither learns of the other', async () => {
    const mine = await send(first, 'first', 's1', starts('r1'), says('m1', 'of the first'));
    const theirs = await send(second, 'second', 's1', starts('r1'), says('m1', 'of the second'));
    expect([mine, theirs].map(({ accepted, rejected }) => [accepted, rejected])).toEqual([
      [2, []],
      [2, []],
    ]);
    // again, now known
    expect(await send(second, 'second', 's1', says('m2', 'more of the second'))).toMatchObject({ accepted: 1 });
    const [own, other] = [await sessionsOf('first'), await sessionsOf('second')];
    expect(own).toEqual(['s1']);
    expect(other).toEqual([expect.stringMatching(/^s1~[0-9a-f]{16}$/)]);
    // the id is not predictable, so it cannot be blocked in advance
    const guessed = keyedDigest(new Uint8Array(32), JSON.stringify(['second', 's1'])).slice(0, 16);
    expect(other).not.toContain(`s1~${guessed}`);
    const text = async (id = '') => JSON.stringify(await stage.ask(`/sessions/${encodeURIComponent(id)}/transcript`));
    expect(await text('s1')).not.toContain('of the second');
    expect(await text(other[0])).toContain('more of the second');
  });

  test('have separate logs, reports and rejected records', async () => {
    const [theirs = ''] = await sessionsOf('second');
    const insight = { signal: 'hook_fatal', source: 'Stop', sessionId: 's1' };
    const log = { level: 'fatal', component: 'hook:Stop', message: 'exit 3', insight };
    await send(second, 'second', 's1', { kind: 'log', log }, { kind: 'status', status: { state: 'idle' } });
    await send(second, 'second', 's1', { kind: 'nothing-known' });
    const { sessions } = await stage.ask<SessionList>('/sessions');
    const counts = sessions.map(({ id, insightCount, quarantinedCount }) => [id, insightCount, quarantinedCount]);
    expect(counts).toEqual(
      expect.arrayContaining([
        ['s1', 0, 0],
        [theirs, 1, 1],
      ]),
    );
    expect((await stage.ask<AgentDetail>('/agents/first')).agent).toMatchObject({ insightCount: 0 });
  });

  test('get commands under the id that the runner uses', async () => {
    const [theirs = ''] = await sessionsOf('second');
    const path = `/sessions/${encodeURIComponent(theirs)}`;
    const stream = await stage.stream('/agents/second/commands?runner=r&startedAt=1', second);
    await stage.ask(`${path}/attachments?name=notes.txt`, {
      method: 'POST',
      body: FILE,
      headers: { 'content-type': 'text/plain' },
    });
    const attachments = [{ hash: hashOf(FILE), name: 'notes.txt' }];
    const body = { text: 'do it', clientId: 'c1', attachments };
    const { messageId } = await stage.ask<{ messageId: string }>(`${path}/messages`, { method: 'POST', body });
    const { data } = await stream.frame('command' as never);
    expect(data).toMatchObject({ type: 'message', sessionId: 's1', body: { messageId } });
    expect(JSON.stringify(stream.frames)).not.toContain(theirs);
    const bytes = await stage.send(`/api/v1/attachments/${hashOf(FILE)}?session=s1`, { as: second });
    expect([bytes.status, await bytes.text()]).toEqual([200, 'notes']);
    expect(await stage.status(`/attachments/${hashOf(FILE)}?session=s1`, { as: first })).toBe(404);
    const obligations = (as: Headers) => stage.ask<ObligationList>('/agents/second/reply-obligations', { as });
    await send(second, 'second', 's1', {
      event: {
        type: 'RUN_STARTED',
        threadId: 's',
        runId: 'r2',
        metadata: { interlude: { userMessageIds: [messageId] } },
      },
    });
    expect((await obligations(second)).obligations.map(({ sessionId }) => sessionId)).toEqual(['s1']);
    expect((await obligations(stage.owner)).obligations.map(({ sessionId }) => sessionId)).toEqual([theirs]);
  });

  test('verify an answer by the digest over the id that they use', async () => {
    const [theirs = ''] = await sessionsOf('second');
    const path = `/sessions/${encodeURIComponent(theirs)}/requests/q1`;
    const input = { command: 'ls' };
    const value = { request_id: 'q1', kind: 'permission', tool_name: 'Bash', input };
    await send(second, 'second', 's1', { event: { type: 'CUSTOM', name: 'request:opened', value } });
    const { request } = await stage.ask<RequestDetail>(path);
    const position = request.openedPosition ?? '';
    expect(request.digest).toBe(requestDigest({ sessionId: 's1', requestId: 'q1', tool: 'Bash', input, position }));
    const body = { behavior: 'allow', digest: request.digest };
    expect(await stage.status(path, { method: 'POST', body })).toBe(202);
  });
});

test('a restarted runner finds its session after a server restart', async () => {
  const [theirs = ''] = await sessionsOf('second');
  const again = await AccessStage.start({ dataDir: stage.dataDir });
  const body = {
    producer: { id: 'second/2', epoch: 1 },
    records: [record(1, { agentId: 'second', sessionId: 's1', ...says('m9', 'after it') })],
  };
  expect(await again.ask<IngestResponse>('/events', { method: 'POST', as: second, body })).toMatchObject({
    accepted: 1,
  });
  expect(await sessionsOf('second')).toEqual([theirs]);
  await again.close();
});

test('keep the alias after the key is replaced', async () => {
  const [theirs = ''] = await sessionsOf('second');
  await stage.parts.database.writes.run((transaction) =>
    transaction.execute("DELETE FROM server_keys WHERE name = 'session-alias'"),
  );
  const again = await AccessStage.start({ dataDir: stage.dataDir });
  const body = {
    producer: { id: 'second/3', epoch: 1 },
    records: [record(1, { agentId: 'second', sessionId: 's1', ...says('m10', 'under another key') })],
  };
  expect(await again.ask<IngestResponse>('/events', { method: 'POST', as: second, body })).toMatchObject({
    accepted: 1,
  });
  expect(await sessionsOf('second')).toEqual([theirs]);
  await again.close();
});

test('keep the alias after the other session is removed and the server restarted', async () => {
  const [theirs = ''] = await sessionsOf('second');
  await stage.parts.database.writes.run((transaction) => transaction.execute("DELETE FROM sessions WHERE id = 's1'"));
  const again = await AccessStage.start({ dataDir: stage.dataDir });
  const body = {
    producer: { id: 'second/4', epoch: 1 },
    records: [record(1, { agentId: 'second', sessionId: 's1', ...says('m11', 'after the removal') })],
  };
  expect(await again.ask<IngestResponse>('/events', { method: 'POST', as: second, body })).toMatchObject({
    accepted: 1,
  });
  expect(await sessionsOf('second')).toEqual([theirs]);
  await again.close();
});

test('a credential for both agents is refused for the agent without an alias only', async () => {
  const prefixed = await stage.token({ role: 'runner', agentPrefix: 's' });
  await send(stage.owner, 'shared', 's3', starts('r1'));
  await send(second, 'second', 's3', says('m1', 'in its own'));
  const sent = async (agentId: string, as: Headers, sessionId: string) => {
    const records = [record(1, { agentId, sessionId, ...says('m1', 'by a wider token') })];
    const body = { producer: { id: `s/${agentId}/${sessionId}/${as === prefixed}`, epoch: 1 }, records };
    const { rejected } = await stage.ask<IngestResponse>('/events', { method: 'POST', as, body });
    return rejected.map(({ code }) => code);
  };
  expect(await sent('third', stage.owner, 's3')).toEqual(['session_of_another_agent']);
  expect(await sent('second', stage.owner, 's3')).toEqual([]);
  expect(await sent('second', prefixed, 's3')).toEqual([]);
  expect(JSON.stringify(await stage.ask('/sessions/s3/transcript'))).not.toContain('by a wider token');
});

test('a session id costs as many look-ups when it is used as when it is free', async () => {
  const { database } = stage.parts;
  await send(first, 'first', 'taken', starts('r1'));
  const run = database.writes.run.bind(database.writes);
  let lookups = 0;
  vi.spyOn(database.writes, 'run').mockImplementation(((job: WriteJob<unknown>, about: JobOptions) =>
    run((transaction) => {
      const batch = (statements: InStatement[]) => {
        lookups += statements.length;
        return transaction.batch(statements);
      };
      return job({ ...transaction, batch });
    }, about)) as never);
  const costs: number[] = [];
  for (const id of ['free', 'taken', 'free', 'taken']) {
    lookups = 0;
    await send(second, 'second', id, starts(`r${costs.length}`));
    costs.push(lookups);
  }
  vi.restoreAllMocks();
  expect(costs[1]).toBe(costs[0]);
  expect(costs[3]).toBe(costs[2]);
});

test('two runners that start the same id at once both get a session', async () => {
  const answers = await Promise.all([
    send(first, 'first', 's2', starts('r1')),
    send(second, 'second', 's2', starts('r1')),
  ]);
  expect(answers.map(({ accepted, rejected }) => [accepted, rejected])).toEqual([
    [1, []],
    [1, []],
  ]);
});
