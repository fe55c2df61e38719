import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { ObligationList, SessionObligations, TranscriptPage } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** What the server must know of the replies its agents owe, and of whose a record is. */
export function describeObligationsContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`obligations and ownership, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        id = `obligations-${serial}`;
        seq = 0;
        await run();
      });

    const sendTo = (sessionId: string, ...events: AgUiEvent[]) =>
      ingest(
        target,
        events.map((event) => record(++seq, { agentId: id, sessionId, event })),
        1,
        id,
      );
    const send = (...events: AgUiEvent[]) => sendTo(id, ...events);
    const asks = (messageId: string, delta: string): AgUiEvent[] => [
      { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: 'Ada' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
      { type: 'TEXT_MESSAGE_END', messageId },
    ];
    const turn = (runId: string, ...userMessageIds: string[]): AgUiEvent[] => [
      { type: 'RUN_STARTED', threadId: id, runId, metadata: { interlude: { turn: 'user', userMessageIds } } },
      { type: 'RUN_FINISHED', threadId: id, runId },
    ];
    const custom = (eventName: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name: eventName, value });
    const read = async (path: string) => (await target.get(`/api/v1${path}`)).json();
    const owed = (): Promise<ObligationList> => read(`/agents/${id}/reply-obligations`);
    const idsOwed = async () => (await owed()).obligations.map((obligation) => obligation.messageId);
    const counts = async () => [
      (await read(`/sessions/${id}`)).session.owedCount,
      (await read(`/agents/${id}`)).agent.owedCount,
    ];

    test('lists what is owed, the oldest first, until it is answered', async () => {
      await send(...asks('u1', 'First?'), ...asks('u2', 'Second?'));
      const { position, obligations } = await owed();
      expect(obligations).toMatchObject([
        { messageId: 'u1', sessionId: id, from: { kind: 'person', id: 'Ada' }, text: 'First?' },
        { messageId: 'u2', sessionId: id, from: { kind: 'person', id: 'Ada' }, text: 'Second?' },
      ]);
      expect(Number(position)).toBeGreaterThan(0);
      expect(await counts()).toEqual([2, 2]);
      await send(...turn('r1', 'u1'));
      expect(await idsOwed()).toEqual(['u2']);
      await send(custom('obligation:waived', { message_id: 'u2', reason: 'settled in person' }));
      expect(await idsOwed()).toEqual([]);
      expect(await counts()).toEqual([0, 0]);
    });

    const waive = (messageId: string, body?: object, headers?: Record<string, string>) =>
      target.send(`/api/v1/sessions/${id}/obligations/${encodeURIComponent(messageId)}/waive`, {
        method: 'POST',
        headers: headers ?? { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
      });

    test('drops what a person says needs no reply, once, and tells it in the transcript', async () => {
      await send(...asks('u1', 'First?\nAnd more'), ...asks('u2', 'Second?'), ...turn('r0'));
      const taken = await waive('u1', { reason: 'settled in person', clientId: 'c1' });
      expect([taken.status, await taken.json()]).toEqual([200, { messageId: 'u1', state: 'waived' }]);
      const again = await waive('u1', { reason: 'settled in person', clientId: 'c1' });
      expect([again.status, await again.json()]).toEqual([200, { messageId: 'u1', state: 'waived' }]);
      expect(await idsOwed()).toEqual(['u2']);
      expect(await counts()).toEqual([1, 1]);
      const { turns } = (await read(`/sessions/${id}/transcript`)) as TranscriptPage;
      const notices = turns.flatMap(({ items }) => items).filter((item) => item.kind === 'notice');
      expect(notices).toMatchObject([
        { code: 'waived', text: 'The reply to “First?” was waived by operator: settled in person.' },
      ]);
      for (const other of [{ clientId: 'c2' }, {}]) {
        const late = await waive('u1', other);
        expect([late.status, await errorOf(late)]).toMatchObject([
          409,
          { code: 'conflict', reason: 'obligation_settled', state: 'waived' },
        ]);
      }
    });

    test('drops it also where a turn that failed left it owed, and where the agent has ended', async () => {
      const failed = { type: 'RUN_ERROR', message: 'No credit' };
      await send(...asks('u1', 'Well?'), ...turn('r1', 'u1').slice(0, 1), failed);
      await send(custom('session:ended', { reason: 'exit', exitCode: 0 }));
      expect(await idsOwed()).toEqual(['u1']);
      expect((await waive('u1')).status).toBe(200);
      expect(await idsOwed()).toEqual([]);
    });

    test('drops no reply that was given or never owed, and for nobody who is not signed in', async () => {
      await send(...asks('u1', 'Well?'), ...turn('r1', 'u1'));
      expect(await errorOf(await waive('u1'))).toMatchObject({ code: 'conflict', state: 'answered' });
      expect((await waive('u9')).status).toBe(404);
      expect((await waive('u1', { because: 'x' })).status).toBe(400);
      expect((await waive('u1', {}, {})).status).toBe(401);
    });

    const says = (messageId: string, delta: string): AgUiEvent[] => [
      { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
      { type: 'TEXT_MESSAGE_END', messageId },
    ];
    const woken = (runId: string, ...said: AgUiEvent[]): AgUiEvent[] => {
      const interlude = { turn: 'between-run' as const, trigger: { kind: 'task' as const, taskIds: ['t1'] } };
      return [
        { type: 'RUN_STARTED', threadId: id, runId, metadata: { interlude } },
        ...said,
        { type: 'RUN_FINISHED', threadId: id, runId },
      ];
    };
    const accept = (messageId: string, body: object, headers?: Record<string, string>) =>
      target.send(`/api/v1/sessions/${id}/obligations/${encodeURIComponent(messageId)}/accept`, {
        method: 'POST',
        headers: headers ?? { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });

    test('takes a text for the reply when a person says so, and only the text that they were shown', async () => {
      await send(
        ...asks('u1', 'Which port?'),
        ...asks('u2', 'And which host?'),
        ...woken('r1', ...says('m1', 'Port 80.')),
      );
      expect((await owed()).obligations).toMatchObject([
        { messageId: 'u1', candidate: { messageId: 'm1', turnId: 'r1', text: 'Port 80.' }, isOverdue: false },
        { messageId: 'u2', candidate: { messageId: 'm1' } },
      ]);
      await send(...woken('r2', ...says('m2', 'Port 8080.')));
      const late = await accept('u1', { candidateId: 'm1' });
      expect([late.status, await errorOf(late)]).toMatchObject([
        409,
        { code: 'conflict', reason: 'candidate_changed', candidate: { messageId: 'm2' } },
      ]);
      for (let again = 0; again < 2; again++) {
        const taken = await accept('u1', { candidateId: 'm2', clientId: 'c1' });
        expect([taken.status, await taken.json()]).toEqual([200, { messageId: 'u1', state: 'answered' }]);
      }
      expect(await errorOf(await accept('u1', { candidateId: 'm2' }))).toMatchObject({ reason: 'obligation_settled' });
      expect(await idsOwed()).toEqual(['u2']);
      expect(await counts()).toEqual([1, 1]);
      const { turns } = (await read(`/sessions/${id}/transcript`)) as TranscriptPage;
      const notices = turns.flatMap(({ items }) => items).filter((item) => item.kind === 'notice');
      expect(notices).toMatchObject([
        { code: 'accepted', text: 'A text was accepted as the reply to “Which port?” by operator.' },
      ]);
      expect((await accept('u2', { candidateId: 'm2' }, {})).status).toBe(401);
      expect((await accept('u9', { candidateId: 'm2' })).status).toBe(404);
      expect((await accept('u2', {})).status).toBe(400);
    });

    test('takes no text that was told under the id of the one that was shown', async () => {
      await send(...asks('u1', 'May I?'), ...woken('r1', ...says('m1', 'No.')));
      const [shown] = (await owed()).obligations;
      const candidatePosition = shown?.candidate?.position;
      await send(...woken('r2', ...says('m1', 'Yes.')));
      const late = await accept('u1', { candidateId: 'm1', candidatePosition });
      expect([late.status, await errorOf(late)]).toMatchObject([
        409,
        { reason: 'candidate_changed', candidate: { messageId: 'm1', text: 'Yes.' } },
      ]);
      const [now] = (await owed()).obligations;
      const taken = await accept('u1', { candidateId: 'm1', candidatePosition: now?.candidate?.position });
      expect(taken.status).toBe(200);
    });

    test('tells what settled the replies of a session, the newest first', async () => {
      await send(...asks('u1', 'First?'), ...asks('u2', 'Second?'), ...asks('u3', 'Third?'), ...turn('r1', 'u1'));
      await waive('u2', { reason: 'settled in person' });
      const all = (await read(`/sessions/${id}/obligations`)) as SessionObligations;
      expect(all.owed.map(({ messageId }) => messageId)).toEqual(['u3']);
      expect(all.settled).toMatchObject([
        { messageId: 'u2', clearedBy: 'waived', reason: 'settled in person' },
        { messageId: 'u1', clearedBy: 'turn', answeredInTurnId: 'r1' },
      ]);
      expect((await target.send(`/api/v1/sessions/${id}/obligations`, {})).status).toBe(401);
    });

    test('is empty for an agent nobody has heard of: its runner asks before its first word', async () => {
      expect((await owed()).obligations).toEqual([]);
    });

    test('tells the fleet of each obligation as it is owed and as it is answered', async () => {
      const { position } = await owed();
      const reader = await target.stream(`topic=fleet&after=${position}`);
      const told = () =>
        reader.frames.flatMap((frame) =>
          frame.event === 'obligation' && frame.data.agentId === id ? [[frame.data.messageId, frame.data.state]] : [],
        );
      await send(...asks('u1', 'Well?'));
      await reader.until(() => told().length === 1);
      await send(...turn('r1', 'u1'));
      await reader.until(() => told().length === 2);
      expect(told()).toEqual([
        ['u1', 'owed'],
        ['u1', 'answered'],
      ]);
    });

    test('counts a message that is told again, over many requests, once', async () => {
      for (const event of [...asks('u1', 'Well?'), ...asks('u1', 'Well?')]) await send(event);
      expect([await idsOwed(), await counts()]).toEqual([['u1'], [1, 1]]);
      await send(...turn('r1', 'u1'));
      await send(...asks('u1', 'Well?'));
      expect([await idsOwed(), await counts()]).toEqual([[], [0, 0]]);
    });

    test('parks what an outbox says into the session of another agent, whoever else it writes for', async () => {
      await send(custom('marker', {}));
      const own = { agentId: `${id}-b`, sessionId: `${id}-new`, event: custom('marker', {}) };
      const foreign = { ...own, sessionId: id };
      const { rejected } = await ingest(target, [record(++seq, own), record(++seq, foreign)], 1, id);
      expect(rejected).toMatchObject([{ seq, code: 'session_of_another_agent' }]);
      expect((await read(`/agents/${id}-b`)).agent).toMatchObject({ quarantinedCount: 1 });
    });

    test('lets no outbox write under the server’s own name', async () => {
      await expect(ingest(target, [record(1, { event: custom('marker', {}) })], 1, 'interlude')).rejects.toThrow(
        'malformed',
      );
    });
  });
}
