import type { AgUiEvent, InterludeMetadata } from '@interlude/protocol/ag-ui';
import type { AgentDetail, ParkedList, Task, TranscriptPage, Turn } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** The session that owns a task's records, and how people settle records without an owner. */
export function describeOwnershipContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`task ownership, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let agentId = '';
    let seq = 0;
    let [a, b, c] = ['', '', ''];

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        agentId = `ownership-${serial}`;
        [a, b, c] = ['a', 'b', 'c'].map((letter) => `${agentId}-${letter}`) as [string, string, string];
        seq = 0;
        await run();
      });

    const eventRecord = (sessionId: string, event: AgUiEvent) => record(++seq, { agentId, sessionId, event });
    const send = (sessionId: string, ...events: AgUiEvent[]) =>
      ingest(
        target,
        events.map((event) => eventRecord(sessionId, event)),
        1,
        agentId,
      );
    const custom = (eventName: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name: eventName, value });
    const started = (task_id: string, more: object = {}) =>
      custom('task:started', { task_id, description: `Poll ${task_id}`, ...more });
    const ended = (task_id: string, more: object = {}) =>
      custom('task:completed', { task_id, status: 'completed', ...more });
    const run = (
      type: 'RUN_STARTED' | 'RUN_FINISHED',
      runId: string,
      interlude: InterludeMetadata = {},
    ): AgUiEvent => ({
      type,
      runId,
      metadata: { interlude },
    });
    const wokenBy = (...taskIds: string[]): InterludeMetadata => ({
      turn: 'between-run',
      trigger: { kind: 'task', taskIds },
    });
    const marker = custom('marker', {});

    const read = async (path: string) => (await target.get(`/api/v1${path}`)).json();
    const tasks = async (sessionId: string): Promise<Task[]> => (await read(`/sessions/${sessionId}/tasks`)).tasks;
    const turns = async (sessionId: string): Promise<Turn[]> =>
      ((await read(`/sessions/${sessionId}/transcript`)) as TranscriptPage).turns;
    const items = async (sessionId: string) => (await turns(sessionId)).flatMap((turn) => turn.items);
    const agent = (): Promise<AgentDetail> => read(`/agents/${agentId}`);
    const listed = (query = ''): Promise<ParkedList> => read(`/agents/${agentId}/parked${query}`);
    const post = (path: string, body: object = {}) =>
      target.send(`/api/v1/agents/${agentId}/parked/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });

    test('moves an end reported by another session to the owner, with the reporter’s name', async () => {
      await send(a, started('t1'));
      const response = await send(b, ended('t1', { status: 'failed', exit_code: 3 }), marker);
      expect(response).toMatchObject({ accepted: 2, rejected: [] });
      expect(await tasks(a)).toMatchObject([
        { id: 't1', description: 'Poll t1', status: 'failed', exitCode: 3, reportedBy: b, assignedBy: null },
      ]);
      expect(await tasks(b)).toEqual([]);
      expect((await items(a)).filter(({ kind }) => kind === 'task')).toMatchObject([
        { id: 't1', phase: 'started' },
        { id: 't1', phase: 'failed', reportedBy: b },
      ]);
      expect((await read(`/sessions/${a}`)).session).toMatchObject({ runningTaskCount: 0 });
      expect((await agent()).agent).toMatchObject({ quarantinedCount: 0, parkedCount: 0 });
    });

    test('links the reporting turn to the owner, without counting the task as its cause', async () => {
      await send(a, started('t1'));
      await send(b, ended('t1'), run('RUN_STARTED', 'r1', wokenBy('t1')), run('RUN_FINISHED', 'r1', wokenBy('t1')));
      const [turn, ...others] = await turns(b);
      expect(others).toEqual([]);
      expect(turn).toMatchObject({
        id: 'r1',
        kind: 'between-run',
        trigger: { kind: 'task', taskIds: ['t1'], ofSessionIds: [a] },
        items: [{ kind: 'notice', code: 'task-elsewhere', ofSessionId: a, text: expect.stringContaining('Poll t1') }],
      });
      expect(await tasks(a)).toMatchObject([
        { answeredInTurnId: null, toldElsewhere: { sessionId: b, turnId: 'r1' }, reportedBy: b },
      ]);
      // A turn of the owner that names no cause was woken by something else.
      await send(a, { type: 'RUN_STARTED', runId: 'r2', parentRunId: 'r0' }, run('RUN_FINISHED', 'r2'));
      expect((await turns(a)).find(({ id }) => id === 'r2')).toMatchObject({
        trigger: { kind: 'unknown', taskIds: [] },
      });
    });

    test('attributes a turn without a cause to the last end that its session reported', async () => {
      await send(a, started('t1'));
      await send(b, ended('t1'), { type: 'RUN_STARTED', runId: 'r1', parentRunId: 'r0' });
      expect((await turns(b))[0]).toMatchObject({ trigger: { taskIds: ['t1'], ofSessionIds: [a] } });
    });

    test('attributes a turn that names its cause only at its end, and notifies the owner once', async () => {
      await send(a, started('t1'), started('t2'));
      await send(b, run('RUN_STARTED', 'r1', { turn: 'user' }), ended('t1'), ended('t2'));
      await send(b, run('RUN_FINISHED', 'r1', { foldedTaskIds: ['t1', 't2'] }));
      expect(await tasks(a)).toMatchObject([
        { toldElsewhere: { sessionId: b, turnId: 'r1' } },
        { toldElsewhere: { sessionId: b, turnId: 'r1' } },
      ]);
    });

    test('ignores a producer’s claims about owners', async () => {
      const trigger = { kind: 'task' as const, taskIds: ['t1', 't2'], ofSessionIds: ['x', null] };
      await send(a, started('t1'));
      await send(b, started('t2'), run('RUN_STARTED', 'r1', { turn: 'between-run', trigger }));
      const triggerIn = async (sessionId: string) => (await turns(sessionId)).find(({ id }) => id === 'r1')?.trigger;
      expect(await triggerIn(b)).toMatchObject({ ofSessionIds: [a, null] });
      await send(a, run('RUN_STARTED', 'r1', { turn: 'between-run', trigger: { ...trigger, taskIds: ['t1'] } }));
      expect(await triggerIn(a)).toEqual({ kind: 'task', taskIds: ['t1'] });
    });

    test('moves progress and subagent output to the owner, leaving no line in the reporting session', async () => {
      await send(a, started('t1', { task_type: 'local_agent' }));
      const subagentEvent = (type: string, more: object = {}): AgUiEvent => ({
        type,
        messageId: 'm1',
        subagentRunId: 't1',
        ...more,
      });
      await send(
        b,
        custom('task:progress', { task_id: 't1', summary: 'Half way', last_tool_name: 'Read' }),
        custom('task:updated', { task_id: 't1', error: 'One failed' }),
        subagentEvent('TEXT_MESSAGE_START', { role: 'assistant' }),
        subagentEvent('TEXT_MESSAGE_CONTENT', { delta: 'I found it' }),
        subagentEvent('TEXT_MESSAGE_END'),
      );
      expect(await tasks(a)).toMatchObject([{ summary: 'Half way', lastToolName: 'Read', error: 'One failed' }]);
      const detail = await read(`/sessions/${a}/tasks/t1`);
      expect(detail.items).toMatchObject([{ kind: 'message', text: 'I found it' }]);
      expect(await items(b)).toEqual([]);
    });

    test('keeps the output of an unknown subagent in its own session', async () => {
      await send(a, marker);
      const chunk = { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm1', subagentRunId: 'toolu_1', delta: 'Looking' };
      const { rejected } = await send(b, chunk);
      expect(rejected).toEqual([]);
    });

    test('records a known end once, from any reporter', async () => {
      await send(a, started('t1'), ended('t1', { status: 'failed' }));
      await send(b, ended('t1', { status: 'completed', summary: 'Again' }), ended('t1'));
      expect(await tasks(a)).toMatchObject([{ status: 'failed', reportedBy: null }]);
      expect((await items(a)).map((item) => (item.kind === 'task' ? item.phase : item.kind))).toEqual([
        'started',
        'failed',
      ]);
      expect(await items(b)).toHaveLength(2);
      // A lost task was a guess.
      await send(a, started('t2'), custom('session:ended', { reason: 'killed' }));
      await send(b, ended('t2'));
      expect((await tasks(a)).at(-1)).toMatchObject({ id: 't2', status: 'completed', reportedBy: b });
    });

    test('replaces a reported end with the owner’s own, which later reports don’t change', async () => {
      await send(a, run('RUN_STARTED', 'r1', { turn: 'user' }), started('t1'), run('RUN_FINISHED', 'r1'));
      const { position } = await send(b, marker);
      const reader = await target.stream(`topic=fleet&after=${position}`);
      await send(b, custom('task:updated', { task_id: 't1', status: 'killed', error: 'Gone' }));
      expect(await tasks(a)).toMatchObject([{ status: 'stopped', error: 'Gone', reportedBy: b }]);
      await send(a, ended('t1', { status: 'failed', exit_code: 3 }));
      const own = { id: 't1', status: 'failed', exitCode: 3, error: null, reportedBy: null };
      expect(await tasks(a)).toMatchObject([own]);
      expect((await read(`/sessions/${a}`)).session).toMatchObject({ runningTaskCount: 0 });
      // Tasks of earlier tests may still change.
      const updates = () =>
        reader.frames.flatMap(({ event, data }) => (event === 'task' && data.sessionId === a ? [data] : []));
      await reader.until(() => updates().some(({ status }) => status === 'failed'));
      expect(updates().at(-1)).toMatchObject(own);
      await reader.cancel();
      await send(c, ended('t1', { status: 'completed', exit_code: 0 }));
      await send(c, custom('task:updated', { task_id: 't1', status: 'completed', error: 'Late' }));
      await send(
        b,
        custom('task:progress', { task_id: 't1', summary: 'Late' }),
        custom('task:updated', { task_id: 't1', error: 'Late' }),
      );
      expect(await tasks(a)).toMatchObject([{ ...own, summary: null }]);
      // The task's own end woke the turn that names no cause.
      await send(a, { type: 'RUN_STARTED', runId: 'r2', parentRunId: 'r1' });
      expect((await turns(a)).find(({ id }) => id === 'r2')).toMatchObject({
        trigger: { kind: 'task', taskIds: ['t1'] },
        items: [{ kind: 'task', id: 't1', phase: 'failed' }],
      });
      expect(await tasks(a)).toMatchObject([{ ...own, answeredInTurnId: 'r2' }]);
    });

    test('keeps one line of an end per reporter, for any event and any number of repeats', async () => {
      await send(a, started('t1'));
      const killed = custom('task:updated', { task_id: 't1', status: 'killed' });
      await send(b, killed);
      const line = { kind: 'notice', code: 'task-elsewhere', ofSessionId: a, text: expect.stringContaining('stopped') };
      expect(await items(b)).toMatchObject([line]);
      await send(b, ended('t1', { status: 'stopped' }), killed);
      await send(b, killed);
      expect(await items(b)).toMatchObject([line]);
      await send(b, { type: 'RUN_STARTED', runId: 'r1', parentRunId: 'r0' });
      expect(await turns(b)).toMatchObject([
        { id: 'r1', trigger: { taskIds: ['t1'], ofSessionIds: [a] }, items: [line] },
      ]);
    });

    test('does not treat another session’s guess as an end, in one request or in several', async () => {
      const lost = ended('t1', { status: 'lost' });
      await send(a, started('t1'));
      await send(b, lost, ended('t1', { status: 'failed' }));
      expect(await tasks(a)).toMatchObject([{ status: 'failed', reportedBy: b }]);
      await send(c, started('t2', { run_id: 'x' }), ended('t2', { run_id: 'x', status: 'lost' }), started('t2'));
      await send(b, ended('t2'), ended('t2', { run_id: 'x', status: 'failed' }));
      expect((await tasks(c)).map(({ runId, status }) => [runId, status])).toEqual([
        ['x', 'failed'],
        [null, 'completed'],
      ]);
    });

    test('ignores a producer’s claims about reporters and assignments', async () => {
      const claiming = (event: AgUiEvent): AgUiEvent => ({
        ...event,
        metadata: { interlude: { reportedBy: 'x', assignedBy: 'operator' } },
      });
      await send(a, started('t1'), started('t2'), claiming(ended('t1')));
      await send(b, claiming(ended('t2')), claiming(ended('t3')));
      expect(await tasks(a)).toMatchObject([
        { id: 't1', reportedBy: null, assignedBy: null },
        { id: 't2', reportedBy: b, assignedBy: null },
      ]);
      const [parked] = (await listed()).records;
      await post(`${parked?.position}/assign`, { sessionId: b });
      expect(await tasks(b)).toMatchObject([{ id: 't3', reportedBy: null, assignedBy: 'operator' }]);
    });

    test('keeps tasks with the same id in two sessions apart, each with its own end', async () => {
      await send(a, started('t1'));
      const { rejected } = await send(b, started('t1'), ended('t1'));
      expect(rejected).toEqual([]);
      expect(await tasks(a)).toMatchObject([{ status: 'running' }]);
      expect(await tasks(b)).toMatchObject([{ status: 'completed', reportedBy: null }]);
    });

    test('resolves a task id of two other sessions by its run, and parks it without one', async () => {
      await send(a, started('t1', { run_id: 'x' }));
      await send(b, started('t1', { run_id: 'y' }));
      await send(c, ended('t1', { run_id: 'y' }));
      expect([await tasks(a), await tasks(b)]).toMatchObject([[{ status: 'running' }], [{ status: 'completed' }]]);
      const { rejected } = await send(c, ended('t1'));
      expect(rejected).toMatchObject([{ code: 'task_of_several_sessions' }]);
      expect(await tasks(a)).toMatchObject([{ status: 'running' }]);
      // A session that started one run resolves reports about the other session's run by the run id.
      await send(a, ended('t1', { run_id: 'y', summary: 'late' }));
      expect(await tasks(a)).toMatchObject([{ status: 'running' }]);
    });

    test('assigns an unknown task to the agent’s only session, and parks it when there are several', async () => {
      await send(a, ended('t1'));
      expect(await tasks(a)).toMatchObject([{ id: 't1', status: 'completed' }]);
      const { rejected } = await send(b, ended('t2'), custom('task:progress', { task_id: 't3' }), marker);
      expect(rejected).toMatchObject([{ code: 'task_of_no_session' }, { code: 'task_of_no_session' }]);
      expect([await tasks(b), (await agent()).agent]).toMatchObject([[], { parkedCount: 2, quarantinedCount: 2 }]);
      const { parked } = await agent();
      expect(parked.map((one) => [one.sessionId, one.parked?.taskId, one.parked?.state])).toEqual([
        [b, 't2', 'parked'],
        [b, 't3', 'parked'],
      ]);
      expect(await items(b)).toMatchObject([{ code: 'quarantined', text: expect.stringContaining('unassigned') }, {}]);
      // A repeat finds it known.
      seq -= 3;
      const again = await send(b, ended('t2'), custom('task:progress', { task_id: 't3' }), marker);
      expect(again).toMatchObject({ duplicates: 3, accepted: 0 });
      expect((await agent()).agent.parkedCount).toBe(2);
    });

    test('resolves the records of a batch in their order', async () => {
      const response = await ingest(
        target,
        [
          eventRecord(a, marker),
          eventRecord(b, ended('t1')),
          eventRecord(a, started('t1')),
          eventRecord(b, ended('t1')),
        ],
        1,
        agentId,
      );
      expect(response.rejected).toMatchObject([{ seq: 2, code: 'task_of_no_session' }]);
      expect(await tasks(a)).toMatchObject([{ status: 'completed', reportedBy: b }]);
    });

    test('does not count another agent’s task with the same id as proof', async () => {
      await send(a, started('t1'));
      const other = `${agentId}-other`;
      const own = (sessionId: string, event: AgUiEvent) => record(++seq, { agentId: other, sessionId, event });
      const { rejected } = await ingest(
        target,
        [own(`${other}-1`, marker), own(`${other}-2`, ended('t1')), eventRecord(b, ended('t1'))],
        1,
        agentId,
      );
      expect(rejected).toMatchObject([{ code: 'task_of_no_session' }]);
      expect(await tasks(a)).toMatchObject([{ status: 'completed', reportedBy: b }]);
    });

    test('returns the same live and reloaded, in the reporting session and in the owner', async () => {
      await send(a, started('t1'));
      const { position } = await send(b, marker);
      const reader = await target.stream(`topic=fleet&topic=session:${a}&topic=session:${b}&after=${position}`);
      await send(b, ended('t1'), run('RUN_STARTED', 'r1', wokenBy('t1')));
      const frames = () => reader.frames.flatMap((frame) => (frame.event === 'session-event' ? [frame.data] : []));
      await reader.until(() => frames().length === 4);
      expect(frames().map((data) => [data.sessionId, data.event.name ?? data.event.type])).toEqual([
        [a, 'task:completed'],
        [b, 'interlude:task-elsewhere'],
        [b, 'RUN_STARTED'],
        [a, 'interlude:task-told'],
      ]);
      await reader.until(() =>
        reader.frames.some((frame) => frame.event === 'task' && frame.data.toldElsewhere?.turnId === 'r1'),
      );
      await reader.cancel();
    });

    describe('settling', () => {
      const park = async () => {
        await send(a, marker);
        await send(
          b,
          custom('task:progress', { task_id: 't9', summary: 'Half way' }),
          ended('t9', { status: 'failed' }),
          ended('t8'),
        );
        return listed();
      };

      test('parked records are assigned to a session with everything known of their task, and appear there', async () => {
        const { records } = await park();
        const before = (await agent()).agent.updatedPosition;
        const response = await post(`${records[1]?.position}/assign`, { sessionId: a, clientId: 'k1' });
        expect([response.status, await response.json()]).toEqual([
          200,
          { taskId: 't9', state: 'assigned', sessionId: a, settled: 2, left: 0 },
        ]);
        expect(await tasks(a)).toMatchObject([
          { id: 't9', status: 'failed', summary: 'Half way', reportedBy: b, assignedBy: 'operator' },
        ]);
        expect(await items(a)).toMatchObject([
          { kind: 'notice', code: 'parked-assigned', ofSessionId: b },
          { kind: 'task', id: 't9', phase: 'failed', reportedBy: b },
        ]);
        // The reporting session shows that the records are no longer parked.
        const [, , , notice, ...more] = await items(b);
        const text = 'The report here about the task “t9” was assigned by operator to the';
        expect([notice, more]).toMatchObject([{ kind: 'notice', code: 'parked-assigned', ofSessionId: a, text }, []]);
        expect((await listed()).records).toMatchObject([{ parked: { taskId: 't8' } }]);
        expect((await listed('?state=assigned')).records).toMatchObject([
          { parked: { state: 'assigned', assignedSessionId: a, settledBy: 'operator', settledAt: expect.any(Number) } },
          { parked: { state: 'assigned' } },
        ]);
        const { agent: now } = await agent();
        expect(now.parkedCount).toBe(1);
        expect(Number(now.updatedPosition)).toBeGreaterThan(Number(before));
        // Later records go to the assigned session.
        await send(b, custom('task:updated', { task_id: 't9', error: 'Late' }));
        expect(await tasks(a)).toMatchObject([{ error: 'Late' }]);
      });

      test('parked records can be assigned to the session that reported them', async () => {
        const { records } = await park();
        expect((await post(`${records[0]?.position}/assign`, { sessionId: b })).status).toBe(200);
        expect(await tasks(b)).toMatchObject([{ status: 'failed', reportedBy: null, assignedBy: 'operator' }]);
        const assigned = (await items(b)).flatMap((item) =>
          item.kind === 'notice' && item.code === 'parked-assigned' ? [item] : [],
        );
        expect(assigned.map(({ text, ofSessionId }) => [text, ofSessionId])).toEqual([
          ['The report here about the task “t9” was assigned to this session by operator.', undefined],
        ]);
        expect((await agent()).agent.parkedCount).toBe(1);
      });

      test('parked records are discarded with a line in the session, and can be looked up', async () => {
        const { records } = await park();
        const response = await post(`${records[2]?.position}/discard`, { reason: 'of an old run', clientId: 'k1' });
        expect(await response.json()).toEqual({
          taskId: 't8',
          state: 'discarded',
          sessionId: null,
          settled: 1,
          left: 0,
        });
        expect((await listed('?state=discarded')).records).toMatchObject([
          { parked: { taskId: 't8', settledBy: 'operator', reason: 'of an old run' } },
        ]);
        expect((await items(b)).at(-1)).toMatchObject({
          code: 'parked-discarded',
          text: expect.stringContaining('t8'),
        });
        expect((await agent()).agent).toMatchObject({ parkedCount: 2, quarantinedCount: 2 });
      });

      test('parked records are settled once: a repeated request gets the same response, another one is refused', async () => {
        const { records } = await park();
        const path = `${records[0]?.position}/assign`;
        const first = await (await post(path, { sessionId: a, clientId: 'k1' })).json();
        expect(await (await post(path, { sessionId: a, clientId: 'k1' })).json()).toEqual(first);
        for (const [action, body] of [
          ['assign', { sessionId: a, clientId: 'k2' }],
          ['assign', { sessionId: a }],
          ['discard', { clientId: 'k2' }],
        ] as const) {
          const refused = await post(`${records[1]?.position}/${action}`, body);
          expect([refused.status, await errorOf(refused)]).toMatchObject([
            409,
            { code: 'conflict', reason: 'parked_settled', state: 'assigned' },
          ]);
        }
        expect((await items(a)).filter(({ kind }) => kind === 'task')).toHaveLength(1);
      });

      test('parked records are not settled under a clientId that another command used', async () => {
        const { records } = await park();
        const [newest, , third] = records.map(({ position }) => position);
        expect((await post(`${newest}/discard`, { reason: 'of an old run', clientId: 'k1' })).status).toBe(200);
        for (const [path, body] of [
          [`${newest}/discard`, { reason: 'another', clientId: 'k1' }],
          [`${newest}/assign`, { sessionId: a, clientId: 'k1' }],
          [`${third}/discard`, { reason: 'of an old run', clientId: 'k1' }],
          [`${third}/assign`, { sessionId: a, clientId: 'k1' }],
        ] as const) {
          const refused = await post(path, body);
          expect([refused.status, (await errorOf(refused)).reason]).toEqual([409, 'client_id_reused']);
        }
        expect((await listed()).records).toMatchObject([{ parked: { taskId: 't8' } }]);
      });

      test('parked records are not assigned to another agent’s session or an unknown one, nor without a sign-in', async () => {
        const { records } = await park();
        const path = `${records[0]?.position}/assign`;
        const other = `${agentId}-other`;
        await ingest(target, [record(1, { agentId: other, sessionId: other, event: marker })], 1, other);
        expect(await errorOf(await post(path, { sessionId: other }))).toMatchObject({
          code: 'conflict',
          reason: 'session_of_another_agent',
        });
        expect((await post(path, { sessionId: 'nowhere' })).status).toBe(404);
        expect((await post(path, {})).status).toBe(400);
        expect((await post(path, { sessionId: a, to: b })).status).toBe(400);
        for (const position of ['0', '999999999', 'x']) {
          expect((await post(`${position}/discard`)).status).toBe(404);
        }
        const unsigned = await target.send(`/api/v1/agents/${agentId}/parked/${path}`, { method: 'POST' });
        expect(unsigned.status).toBe(401);
        expect((await listed()).records).toHaveLength(3);
      });

      test('parked records are listed in pages', async () => {
        const { records } = await park();
        const first = await listed('?limit=2');
        expect([first.hasMore, first.records]).toEqual([true, records.slice(0, 2)]);
        const rest = await listed(`?limit=2&after=${first.records[1]?.position}`);
        expect([rest.hasMore, rest.records]).toEqual([false, records.slice(2)]);
        expect((await target.get(`/api/v1/agents/${agentId}/parked?state=lost`)).status).toBe(400);
      });
    });
  });
}
