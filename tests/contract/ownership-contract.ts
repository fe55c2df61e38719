import type { AgUiEvent, InterludeMetadata } from '@interlude/protocol/ag-ui';
import type { AgentDetail, ParkedList, Task, TranscriptPage, Turn } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** To which session the server gives what is told of a task, and what people do with what it can't give to any. */
export function describeOwnershipContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`whose a task is, ${name}`, () => {
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

    const told = (sessionId: string, event: AgUiEvent) => record(++seq, { agentId, sessionId, event });
    const send = (sessionId: string, ...events: AgUiEvent[]) =>
      ingest(
        target,
        events.map((event) => told(sessionId, event)),
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

    test('an end that another session reports goes to the task’s own, which says who reported it', async () => {
      await send(a, started('t1'));
      const answer = await send(b, ended('t1', { status: 'failed', exit_code: 3 }), marker);
      expect(answer).toMatchObject({ accepted: 2, rejected: [] });
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

    test('the turn that was told of it says whose it is, was not woken by a task of its own, and is linked', async () => {
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
      // a turn of the owner's own that says nothing of it was woken by something else
      await send(a, { type: 'RUN_STARTED', runId: 'r2', parentRunId: 'r0' }, run('RUN_FINISHED', 'r2'));
      expect((await turns(a)).find(({ id }) => id === 'r2')).toMatchObject({
        trigger: { kind: 'unknown', taskIds: [] },
      });
    });

    test('a turn that does not say why it began was told of what its session reported last', async () => {
      await send(a, started('t1'));
      await send(b, ended('t1'), { type: 'RUN_STARTED', runId: 'r1', parentRunId: 'r0' });
      expect((await turns(b))[0]).toMatchObject({ trigger: { taskIds: ['t1'], ofSessionIds: [a] } });
    });

    test('a turn that says so only at its end has it told then, and the owner hears of each turn once', async () => {
      await send(a, started('t1'), started('t2'));
      await send(b, run('RUN_STARTED', 'r1', { turn: 'user' }), ended('t1'), ended('t2'));
      await send(b, run('RUN_FINISHED', 'r1', { foldedTaskIds: ['t1', 't2'] }));
      expect(await tasks(a)).toMatchObject([
        { toldElsewhere: { sessionId: b, turnId: 'r1' } },
        { toldElsewhere: { sessionId: b, turnId: 'r1' } },
      ]);
    });

    test('what a producer says of whose the tasks are does not count', async () => {
      const trigger = { kind: 'task' as const, taskIds: ['t1', 't2'], ofSessionIds: ['x', null] };
      await send(a, started('t1'));
      await send(b, started('t2'), run('RUN_STARTED', 'r1', { turn: 'between-run', trigger }));
      const woken = async (sessionId: string) => (await turns(sessionId)).find(({ id }) => id === 'r1')?.trigger;
      expect(await woken(b)).toMatchObject({ ofSessionIds: [a, null] });
      await send(a, run('RUN_STARTED', 'r1', { turn: 'between-run', trigger: { ...trigger, taskIds: ['t1'] } }));
      expect(await woken(a)).toEqual({ kind: 'task', taskIds: ['t1'] });
    });

    test('how it goes on and what its subagent says go there too, and leave no line where they were told', async () => {
      await send(a, started('t1', { task_type: 'local_agent' }));
      const says = (type: string, more: object = {}): AgUiEvent => ({
        type,
        messageId: 'm1',
        subagentRunId: 't1',
        ...more,
      });
      await send(
        b,
        custom('task:progress', { task_id: 't1', summary: 'Half way', last_tool_name: 'Read' }),
        custom('task:updated', { task_id: 't1', error: 'One failed' }),
        says('TEXT_MESSAGE_START', { role: 'assistant' }),
        says('TEXT_MESSAGE_CONTENT', { delta: 'I found it' }),
        says('TEXT_MESSAGE_END'),
      );
      expect(await tasks(a)).toMatchObject([{ summary: 'Half way', lastToolName: 'Read', error: 'One failed' }]);
      const detail = await read(`/sessions/${a}/tasks/t1`);
      expect(detail.items).toMatchObject([{ kind: 'message', text: 'I found it' }]);
      expect(await items(b)).toEqual([]);
    });

    test('a subagent nobody was told of may speak, in its own session', async () => {
      await send(a, marker);
      const chunk = { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm1', subagentRunId: 'toolu_1', delta: 'Looking' };
      const { rejected } = await send(b, chunk);
      expect(rejected).toEqual([]);
    });

    test('an end that is known already is told once, by whomever', async () => {
      await send(a, started('t1'), ended('t1', { status: 'failed' }));
      await send(b, ended('t1', { status: 'completed', summary: 'Again' }), ended('t1'));
      expect(await tasks(a)).toMatchObject([{ status: 'failed', reportedBy: null }]);
      expect((await items(a)).map((item) => (item.kind === 'task' ? item.phase : item.kind))).toEqual([
        'started',
        'failed',
      ]);
      expect(await items(b)).toHaveLength(2);
      // lost was a guess
      await send(a, started('t2'), custom('session:ended', { reason: 'killed' }));
      await send(b, ended('t2'));
      expect((await tasks(a)).at(-1)).toMatchObject({ id: 't2', status: 'completed', reportedBy: b });
    });

    test('an end that another session reported gives way to the owner’s own, which nobody’s later word changes', async () => {
      await send(a, run('RUN_STARTED', 'r1', { turn: 'user' }), started('t1'), run('RUN_FINISHED', 'r1'));
      const { position } = await send(b, marker);
      const reader = await target.stream(`topic=fleet&after=${position}`);
      await send(b, custom('task:updated', { task_id: 't1', status: 'killed', error: 'Gone' }));
      expect(await tasks(a)).toMatchObject([{ status: 'stopped', error: 'Gone', reportedBy: b }]);
      await send(a, ended('t1', { status: 'failed', exit_code: 3 }));
      const own = { id: 't1', status: 'failed', exitCode: 3, error: null, reportedBy: null };
      expect(await tasks(a)).toMatchObject([own]);
      expect((await read(`/sessions/${a}`)).session).toMatchObject({ runningTaskCount: 0 });
      const told = () => reader.frames.flatMap((frame) => (frame.event === 'task' ? [frame.data] : []));
      await reader.until(() => told().some(({ status }) => status === 'failed'));
      expect(told().at(-1)).toMatchObject(own);
      await reader.cancel();
      await send(c, ended('t1', { status: 'completed', exit_code: 0 }));
      await send(c, custom('task:updated', { task_id: 't1', status: 'completed', error: 'Late' }));
      await send(
        b,
        custom('task:progress', { task_id: 't1', summary: 'Late' }),
        custom('task:updated', { task_id: 't1', error: 'Late' }),
      );
      expect(await tasks(a)).toMatchObject([{ ...own, summary: null }]);
      // it is its own end that a turn without a cause of its own was woken by
      await send(a, { type: 'RUN_STARTED', runId: 'r2', parentRunId: 'r1' });
      expect((await turns(a)).find(({ id }) => id === 'r2')).toMatchObject({
        trigger: { kind: 'task', taskIds: ['t1'] },
        items: [{ kind: 'task', id: 't1', phase: 'failed' }],
      });
      expect(await tasks(a)).toMatchObject([{ ...own, answeredInTurnId: 'r2' }]);
    });

    test('who reports an end has one line of it, by whatever event it is told, and however often', async () => {
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

    test('a guess of another session is no end that is known, in one request as in several', async () => {
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

    test('what a producer says of who reported or assigned it does not count', async () => {
      const says = (event: AgUiEvent): AgUiEvent => ({
        ...event,
        metadata: { interlude: { reportedBy: 'x', assignedBy: 'operator' } },
      });
      await send(a, started('t1'), started('t2'), says(ended('t1')));
      await send(b, says(ended('t2')), says(ended('t3')));
      expect(await tasks(a)).toMatchObject([
        { id: 't1', reportedBy: null, assignedBy: null },
        { id: 't2', reportedBy: b, assignedBy: null },
      ]);
      const [parked] = (await listed()).records;
      await post(`${parked?.position}/assign`, { sessionId: b });
      expect(await tasks(b)).toMatchObject([{ id: 't3', reportedBy: null, assignedBy: 'operator' }]);
    });

    test('the same task id in two sessions is two tasks, each with its own end', async () => {
      await send(a, started('t1'));
      const { rejected } = await send(b, started('t1'), ended('t1'));
      expect(rejected).toEqual([]);
      expect(await tasks(a)).toMatchObject([{ status: 'running' }]);
      expect(await tasks(b)).toMatchObject([{ status: 'completed', reportedBy: null }]);
    });

    test('of a task two others started, the run says whose it is; without one it is parked', async () => {
      await send(a, started('t1', { run_id: 'x' }));
      await send(b, started('t1', { run_id: 'y' }));
      await send(c, ended('t1', { run_id: 'y' }));
      expect([await tasks(a), await tasks(b)]).toMatchObject([[{ status: 'running' }], [{ status: 'completed' }]]);
      const { rejected } = await send(c, ended('t1'));
      expect(rejected).toMatchObject([{ code: 'task_of_several_sessions' }]);
      expect(await tasks(a)).toMatchObject([{ status: 'running' }]);
      // who started one of its runs is told of another session's by that run
      await send(a, ended('t1', { run_id: 'y', summary: 'late' }));
      expect(await tasks(a)).toMatchObject([{ status: 'running' }]);
    });

    test('a task no session started is that of the only session there is, and parked where there are several', async () => {
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
      // sent again it is known
      seq -= 3;
      const again = await send(b, ended('t2'), custom('task:progress', { task_id: 't3' }), marker);
      expect(again).toMatchObject({ duplicates: 3, accepted: 0 });
      expect((await agent()).agent.parkedCount).toBe(2);
    });

    test('in one batch goes by the order of its records', async () => {
      const answer = await ingest(
        target,
        [told(a, marker), told(b, ended('t1')), told(a, started('t1')), told(b, ended('t1'))],
        1,
        agentId,
      );
      expect(answer.rejected).toMatchObject([{ seq: 2, code: 'task_of_no_session' }]);
      expect(await tasks(a)).toMatchObject([{ status: 'completed', reportedBy: b }]);
    });

    test('another agent’s task of that name is nobody’s proof', async () => {
      await send(a, started('t1'));
      const other = `${agentId}-other`;
      const own = (sessionId: string, event: AgUiEvent) => record(++seq, { agentId: other, sessionId, event });
      const { rejected } = await ingest(
        target,
        [own(`${other}-1`, marker), own(`${other}-2`, ended('t1')), told(b, ended('t1'))],
        1,
        agentId,
      );
      expect(rejected).toMatchObject([{ code: 'task_of_no_session' }]);
      expect(await tasks(a)).toMatchObject([{ status: 'completed', reportedBy: b }]);
    });

    test('live is reloaded, in the session that told and in the one it belongs to', async () => {
      await send(a, started('t1'));
      const { position } = await send(b, marker);
      const reader = await target.stream(`topic=fleet&topic=session:${a}&topic=session:${b}&after=${position}`);
      await send(b, ended('t1'), run('RUN_STARTED', 'r1', wokenBy('t1')));
      const heard = () => reader.frames.flatMap((frame) => (frame.event === 'session-event' ? [frame.data] : []));
      await reader.until(() => heard().length === 4);
      expect(heard().map((data) => [data.sessionId, data.event.name ?? data.event.type])).toEqual([
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

    describe('what is parked', () => {
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

      test('is assigned to a session with all that was told of that task, and appears there', async () => {
        const { records } = await park();
        const before = (await agent()).agent.updatedPosition;
        const answer = await post(`${records[1]?.position}/assign`, { sessionId: a, clientId: 'k1' });
        expect([answer.status, await answer.json()]).toEqual([
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
        // where it was told is said, too, that it is parked no more
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
        // from now on it is that session's
        await send(b, custom('task:updated', { task_id: 't9', error: 'Late' }));
        expect(await tasks(a)).toMatchObject([{ error: 'Late' }]);
      });

      test('can be assigned to the session that told of it', async () => {
        const { records } = await park();
        expect((await post(`${records[0]?.position}/assign`, { sessionId: b })).status).toBe(200);
        expect(await tasks(b)).toMatchObject([{ status: 'failed', reportedBy: null, assignedBy: 'operator' }]);
        const said = (await items(b)).flatMap((item) =>
          item.kind === 'notice' && item.code === 'parked-assigned' ? [item] : [],
        );
        expect(said.map(({ text, ofSessionId }) => [text, ofSessionId])).toEqual([
          ['The report here about the task “t9” was assigned to this session by operator.', undefined],
        ]);
        expect((await agent()).agent.parkedCount).toBe(1);
      });

      test('is discarded, which is said and can be looked up', async () => {
        const { records } = await park();
        const answer = await post(`${records[2]?.position}/discard`, { reason: 'of an old run', clientId: 'k1' });
        expect(await answer.json()).toEqual({ taskId: 't8', state: 'discarded', sessionId: null, settled: 1, left: 0 });
        expect((await listed('?state=discarded')).records).toMatchObject([
          { parked: { taskId: 't8', settledBy: 'operator', reason: 'of an old run' } },
        ]);
        expect((await items(b)).at(-1)).toMatchObject({
          code: 'parked-discarded',
          text: expect.stringContaining('t8'),
        });
        expect((await agent()).agent).toMatchObject({ parkedCount: 2, quarantinedCount: 2 });
      });

      test('is settled once: the same request is answered the same, another one is refused', async () => {
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

      test('is not settled under a clientId that stands for anything else', async () => {
        const { records } = await park();
        const [of9, , of8] = records.map(({ position }) => position);
        expect((await post(`${of9}/discard`, { reason: 'of an old run', clientId: 'k1' })).status).toBe(200);
        for (const [path, body] of [
          [`${of9}/discard`, { reason: 'another', clientId: 'k1' }],
          [`${of9}/assign`, { sessionId: a, clientId: 'k1' }],
          [`${of8}/discard`, { reason: 'of an old run', clientId: 'k1' }],
          [`${of8}/assign`, { sessionId: a, clientId: 'k1' }],
        ] as const) {
          const refused = await post(path, body);
          expect([refused.status, (await errorOf(refused)).reason]).toEqual([409, 'client_id_reused']);
        }
        expect((await listed()).records).toMatchObject([{ parked: { taskId: 't8' } }]);
      });

      test('goes to no session of another agent, to none that is not there, and for nobody who is not signed in', async () => {
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

      test('is listed page by page', async () => {
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
