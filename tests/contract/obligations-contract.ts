import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { ObligationList, SessionObligations, TranscriptPage } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** Pending replies of agents, and the ownership of records. */
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
    const prompts = (messageId: string, delta: string): AgUiEvent[] => [
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
    const openObligations = (): Promise<ObligationList> => read(`/agents/${id}/reply-obligations`);
    const openIds = async () => (await openObligations()).obligations.map((obligation) => obligation.messageId);
    const counts = async () => [
      (await read(`/sessions/${id}`)).session.owedCount,
      (await read(`/agents/${id}`)).agent.owedCount,
    ];

    test('lists pending replies oldest first until they are answered', async () => {
      await send(...prompts('u1', 'First?'), ...prompts('u2', 'Second?'));
      const { position, obligations } = await openObligations();
      expect(obligations).toMatchObject([
        { messageId: 'u1', sessionId: id, from: { kind: 'person', id: 'Ada' }, text: 'First?' },
        { messageId: 'u2', sessionId: id, from: { kind: 'person', id: 'Ada' }, text: 'Second?' },
      ]);
      expect(Number(position)).toBeGreaterThan(0);
      expect(await counts()).toEqual([2, 2]);
      await send(...turn('r1', 'u1'));
      expect(await openIds()).toEqual(['u2']);
      await send(custom('obligation:waived', { message_id: 'u2', reason: 'settled in person' }));
      expect(await openIds()).toEqual([]);
      expect(await counts()).toEqual([0, 0]);
    });

    const waive = (messageId: string, body?: object, headers?: Record<string, string>) =>
      target.send(`/api/v1/sessions/${id}/obligations/${encodeURIComponent(messageId)}/waive`, {
        method: 'POST',
        headers: headers ?? { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
      });

    test('waives a reply once, and shows it in the transcript', async () => {
      await send(...prompts('u1', 'First?\nAnd more'), ...prompts('u2', 'Second?'), ...turn('r0'));
      const waived = await waive('u1', { reason: 'settled in person', clientId: 'c1' });
      expect([waived.status, await waived.json()]).toEqual([200, { messageId: 'u1', state: 'waived' }]);
      const again = await waive('u1', { reason: 'settled in person', clientId: 'c1' });
      expect([again.status, await again.json()]).toEqual([200, { messageId: 'u1', state: 'waived' }]);
      expect(await openIds()).toEqual(['u2']);
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

    test('waives a pending reply of a failed turn or an ended agent', async () => {
      const failed = { type: 'RUN_ERROR', message: 'No credit' };
      await send(...prompts('u1', 'Well?'), ...turn('r1', 'u1').slice(0, 1), failed);
      await send(custom('session:ended', { reason: 'exit', exitCode: 0 }));
      expect(await openIds()).toEqual(['u1']);
      expect((await waive('u1')).status).toBe(200);
      expect(await openIds()).toEqual([]);
    });

    test('refuses to waive an answered or unknown reply, or without a sign-in', async () => {
      await send(...prompts('u1', 'Well?'), ...turn('r1', 'u1'));
      expect(await errorOf(await waive('u1'))).toMatchObject({ code: 'conflict', state: 'answered' });
      expect((await waive('u9')).status).toBe(404);
      expect((await waive('u1', { because: 'x' })).status).toBe(400);
      expect((await waive('u1', {}, {})).status).toBe(401);
    });

    const writes = (messageId: string, delta: string): AgUiEvent[] => [
      { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
      { type: 'TEXT_MESSAGE_END', messageId },
    ];
    const betweenRun = (runId: string, ...events: AgUiEvent[]): AgUiEvent[] => {
      const interlude = { turn: 'between-run' as const, trigger: { kind: 'task' as const, taskIds: ['t1'] } };
      return [
        { type: 'RUN_STARTED', threadId: id, runId, metadata: { interlude } },
        ...events,
        { type: 'RUN_FINISHED', threadId: id, runId },
      ];
    };
    const accept = (messageId: string, body: object, headers?: Record<string, string>) =>
      target.send(`/api/v1/sessions/${id}/obligations/${encodeURIComponent(messageId)}/accept`, {
        method: 'POST',
        headers: headers ?? { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });

    test('settles a reply with a text that the person was shown, and with no other', async () => {
      await send(
        ...prompts('u1', 'Which port?'),
        ...prompts('u2', 'And which host?'),
        ...betweenRun('r1', ...writes('m1', 'Port 80.')),
      );
      expect((await openObligations()).obligations).toMatchObject([
        { messageId: 'u1', candidate: { messageId: 'm1', turnId: 'r1', text: 'Port 80.' }, isOverdue: false },
        { messageId: 'u2', candidate: { messageId: 'm1' } },
      ]);
      await send(...betweenRun('r2', ...writes('m2', 'Port 8080.')));
      const late = await accept('u1', { candidateId: 'm1' });
      expect([late.status, await errorOf(late)]).toMatchObject([
        409,
        { code: 'conflict', reason: 'candidate_changed', candidate: { messageId: 'm2' } },
      ]);
      for (let again = 0; again < 2; again++) {
        const accepted = await accept('u1', { candidateId: 'm2', clientId: 'c1' });
        expect([accepted.status, await accepted.json()]).toEqual([200, { messageId: 'u1', state: 'answered' }]);
      }
      expect(await errorOf(await accept('u1', { candidateId: 'm2' }))).toMatchObject({ reason: 'obligation_settled' });
      expect(await openIds()).toEqual(['u2']);
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

    test('refuses a text that was replaced under the shown text’s id', async () => {
      await send(...prompts('u1', 'May I?'), ...betweenRun('r1', ...writes('m1', 'No.')));
      const [candidateOwner] = (await openObligations()).obligations;
      const candidatePosition = candidateOwner?.candidate?.position;
      await send(...betweenRun('r2', ...writes('m1', 'Yes.')));
      const late = await accept('u1', { candidateId: 'm1', candidatePosition });
      expect([late.status, await errorOf(late)]).toMatchObject([
        409,
        { reason: 'candidate_changed', candidate: { messageId: 'm1', text: 'Yes.' } },
      ]);
      const [now] = (await openObligations()).obligations;
      const accepted = await accept('u1', { candidateId: 'm1', candidatePosition: now?.candidate?.position });
      expect(accepted.status).toBe(200);
    });

    test('lists what settled the replies of a session, newest first', async () => {
      await send(
        ...prompts('u1', 'First?'),
        ...prompts('u2', 'Second?'),
        ...prompts('u3', 'Third?'),
        ...turn('r1', 'u1'),
      );
      await waive('u2', { reason: 'settled in person' });
      const all = (await read(`/sessions/${id}/obligations`)) as SessionObligations;
      expect(all.owed.map(({ messageId }) => messageId)).toEqual(['u3']);
      expect(all.settled).toMatchObject([
        { messageId: 'u2', clearedBy: 'waived', reason: 'settled in person' },
        { messageId: 'u1', clearedBy: 'turn', answeredInTurnId: 'r1' },
      ]);
      expect((await target.send(`/api/v1/sessions/${id}/obligations`, {})).status).toBe(401);
    });

    test('returns an empty list for an unknown agent, because its runner asks before its first record', async () => {
      expect((await openObligations()).obligations).toEqual([]);
    });

    test('updates the fleet when a reply becomes pending and when it is settled', async () => {
      const { position } = await openObligations();
      const reader = await target.stream(`topic=fleet&after=${position}`);
      const updates = () =>
        reader.frames.flatMap((frame) =>
          frame.event === 'obligation' && frame.data.agentId === id ? [[frame.data.messageId, frame.data.state]] : [],
        );
      await send(...prompts('u1', 'Well?'));
      await reader.until(() => updates().length === 1);
      await send(...turn('r1', 'u1'));
      await reader.until(() => updates().length === 2);
      expect(updates()).toEqual([
        ['u1', 'owed'],
        ['u1', 'answered'],
      ]);
    });

    test('counts a message repeated over many requests once', async () => {
      for (const event of [...prompts('u1', 'Well?'), ...prompts('u1', 'Well?')]) await send(event);
      expect([await openIds(), await counts()]).toEqual([['u1'], [1, 1]]);
      await send(...turn('r1', 'u1'));
      await send(...prompts('u1', 'Well?'));
      expect([await openIds(), await counts()]).toEqual([[], [0, 0]]);
    });

    test('parks a producer’s records for another agent’s session, whichever agents it writes for', async () => {
      await send(custom('marker', {}));
      const own = { agentId: `${id}-b`, sessionId: `${id}-new`, event: custom('marker', {}) };
      const foreign = { ...own, sessionId: id };
      const { rejected } = await ingest(target, [record(++seq, own), record(++seq, foreign)], 1, id);
      expect(rejected).toMatchObject([{ seq, code: 'session_of_another_agent' }]);
      expect((await read(`/agents/${id}-b`)).agent).toMatchObject({ quarantinedCount: 1 });
    });

    test('refuses a producer with the server’s own name', async () => {
      await expect(ingest(target, [record(1, { event: custom('marker', {}) })], 1, 'interlude')).rejects.toThrow(
        'malformed',
      );
    });
  });
}
