import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { positionToNumber } from '@interlude/protocol/position';
import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type {
  AgentDetail,
  AgentList,
  SessionDelivery,
  SessionDetail,
  SessionList,
  SessionSummary,
  TaskDetail,
  TaskList,
  TranscriptPage,
  Turn,
} from '@interlude/protocol/read-models';
import { noSessions, SESSION_STATES } from '@interlude/protocol/session-states';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** The GET routes of the read models. Each test has its own session, agent and producer. */
export function describeReadModelsContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`read models, ${name}`, () => {
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
        id = `model-${serial}`;
        seq = 0;
        await run();
      });

    async function send(...records: Record<string, unknown>[]) {
      return ingest(
        target,
        records.map((fields) => record(++seq, { agentId: id, sessionId: id, ...fields })),
        1,
        id,
      );
    }
    const event = (value: AgUiEvent) => ({ event: value });
    async function read<Model>(path: string): Promise<Model> {
      const response = await target.get(`/api/v1${path}`);
      expect(response.status).toBe(200);
      expect(response.headers.get('cache-control')).toBe('no-store');
      return (await response.json()) as Model;
    }
    async function refusal(path: string) {
      const response = await target.get(`/api/v1${path}`);
      return { status: response.status, ...(await errorOf(response)) };
    }
    const turn = (runId: string, text: string) => [
      event({ type: 'RUN_STARTED', threadId: id, runId }),
      event({ type: 'TEXT_MESSAGE_START', messageId: `${runId}/m`, role: 'assistant' }),
      event({ type: 'TEXT_MESSAGE_CONTENT', messageId: `${runId}/m`, delta: text }),
      event({ type: 'TEXT_MESSAGE_END', messageId: `${runId}/m` }),
      event({ type: 'RUN_FINISHED', threadId: id, runId }),
    ];
    const ids = (turns: readonly Turn[]) => turns.map((one) => one.id);
    const started = { type: 'CUSTOM', name: 'task:started', value: { task_id: 't1', description: 'the build' } };

    describe('sessions', () => {
      test('are listed by newest event first', async () => {
        await send(event({ type: 'RUN_STARTED', threadId: id, runId: 'r1' }));
        const other = `${id}-later`;
        await send({ ...event({ type: 'RUN_STARTED', threadId: other, runId: 'r1' }), sessionId: other });
        const { position, sessions } = await read<SessionList>('/sessions');
        const own = sessions.filter((session) => session.agentId === id);
        expect(own.map((session) => session.id)).toEqual([other, id]);
        expect(own.every((session) => Number(session.updatedPosition) <= Number(position))).toBe(true);
      });

      test('are listed up to the limit, exited ones last', async () => {
        const ended = { type: 'CUSTOM', name: 'session:ended', value: { reason: 'done' } };
        await send(event({ type: 'RUN_STARTED', threadId: id, runId: 'r1' }));
        for (const name of ['old', 'older-than-new', 'new']) {
          // The list is ordered by the server's time of receipt, in milliseconds.
          await nextMillisecond();
          await send({ ...event(ended), sessionId: `${id}-${name}` });
        }
        const { sessions: all } = await read<SessionList>('/sessions?limit=1000');
        const own = all.filter((one) => one.agentId === id).map((one) => one.id);
        expect(own).toEqual([`${id}-new`, `${id}-older-than-new`, `${id}-old`, id]);
        const { sessions: some, hasMore } = await read<SessionList>('/sessions?limit=3');
        expect([some.length, hasMore]).toEqual([3, true]);
        const ofAgent = await read<SessionList>(`/sessions?limit=3&agent=${encodeURIComponent(id)}`);
        expect(ofAgent.sessions.map((one) => one.id)).toEqual(own.slice(0, 3));
        expect(ofAgent.counts).toMatchObject({ working: 1, exited: 3, idle: 0 });
        expect(await refusal('/sessions?limit=1001')).toMatchObject({ status: 400, code: 'invalid_argument' });
      });

      test('are returned in pages by urgency, each once', async () => {
        await send(
          ...Array.from({ length: 12 }, (_, index) => ({
            ...event({ type: 'RUN_STARTED', threadId: `${id}-${index}`, runId: 'r1' }),
            sessionId: `${id}-${index}`,
          })),
          { ...event({ type: 'RUN_ERROR', threadId: `${id}-3`, runId: 'r1', message: 'no' }), sessionId: `${id}-3` },
          { ...event({ type: 'RUN_FINISHED', threadId: `${id}-7`, runId: 'r1' }), sessionId: `${id}-7` },
        );
        const pages = async (query: string) => {
          const found: SessionSummary[] = [];
          for (let after: string | null = '0'; after !== null; ) {
            const search: string = new URLSearchParams({ after, limit: '5' }).toString();
            const page: SessionList = await read<SessionList>(`/sessions?${search}${query}`);
            expect(page.sessions.length).toBeLessThanOrEqual(5);
            expect(page.hasMore).toBe(page.next !== null);
            found.push(...page.sessions);
            after = page.next;
          }
          return found;
        };
        // Time changes the states of other sessions, which then move between the pages.
        let all: SessionSummary[];
        let counts: SessionList['counts'];
        for (let before = ''; ; ) {
          all = await pages('');
          const now: SessionList = await read<SessionList>('/sessions?limit=1');
          counts = now.counts;
          if (now.position === before) break;
          before = now.position;
        }
        expect(new Set(all.map((one) => one.id)).size).toBe(all.length);
        const ranks = all.map(({ state }) => SESSION_STATES.indexOf(state));
        expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
        for (const state of SESSION_STATES) {
          expect(counts[state], state).toBe(all.filter((one) => one.state === state).length);
        }
        const own = await pages(`&agent=${encodeURIComponent(id)}`);
        expect(own.map((one) => one.id).sort()).toEqual(
          all
            .filter((one) => one.agentId === id)
            .map((one) => one.id)
            .sort(),
        );
        expect(own.map(({ lastEventAt }) => lastEventAt)).toEqual(
          own.map(({ lastEventAt }) => lastEventAt).sort((a, b) => b - a),
        );
        const refused = [
          '/sessions?after=5',
          '/sessions?after=agent.5.x',
          '/sessions?agent=a&after=idle.5.x',
          '/agents?after=x',
        ];
        for (const path of refused) {
          expect(await refusal(path)).toMatchObject({ status: 400, code: 'invalid_argument' });
        }
      });

      test('can be named, pinned and archived until another turn begins, and marked as seen', async () => {
        await ingest(
          target,
          [record(1, { agentId: id, sessionId: id, event: { type: 'RUN_STARTED', runId: 'r1' } })],
          1,
          id,
        );
        const arrange = (change: object, of = id) =>
          target.send(`/api/v1/sessions/${encodeURIComponent(of)}/arrangement`, {
            method: 'PUT',
            headers: { 'content-type': 'application/json', authorization: `Bearer ${target.token}` },
            body: JSON.stringify(change),
          });
        const session = async () => (await read<SessionDetail>(`/sessions/${encodeURIComponent(id)}`)).session;
        const before = await session();
        expect(before.arrangement).toEqual({ name: null, pinnedAt: null, archivedAt: null, seenState: null });
        const change = { name: ' The login test ', pinned: true, archived: true, seenState: before.stateSince };
        const first = await (await arrange(change)).json();
        expect(first.arrangement).toEqual({
          name: 'The login test',
          pinnedAt: expect.any(Number),
          archivedAt: expect.any(Number),
          seenState: before.stateSince,
        });
        expect(await (await arrange(change)).json()).toEqual({ ...first, position: expect.any(String) });
        const after = await session();
        expect(after).toEqual({ ...before, arrangement: first.arrangement, updatedPosition: after.updatedPosition });
        expect(
          (await read<SessionList>(`/sessions?q=${encodeURIComponent('the login')}&agent=${id}`)).sessions,
        ).toHaveLength(1);
        await ingest(
          target,
          [record(2, { agentId: id, sessionId: id, event: { type: 'RUN_STARTED', runId: 'r2' } })],
          1,
          id,
        );
        expect((await session()).arrangement).toEqual({ ...first.arrangement, archivedAt: null });
        await arrange({ name: '', pinned: false, seenState: null });
        expect((await session()).arrangement).toEqual({
          name: null,
          pinnedAt: null,
          archivedAt: null,
          seenState: null,
        });
        expect((await arrange({}, 'nowhere')).status).toBe(404);
        expect((await arrange({ name: 'x'.repeat(121) })).status).toBe(400);
      });

      test('report whether they are complete, and exactly which records are missing', async () => {
        const whole = `${id}-whole`;
        await ingest(target, [record(1, { agentId: id, sessionId: whole, event: started })], 1, `${id}-a`);
        const delivery = (of: string) => read<SessionDelivery>(`/sessions/${encodeURIComponent(of)}/delivery`);
        expect(await delivery(whole)).toMatchObject({
          producers: [{ id: `${id}-a`, lastSeq: 1 }],
          missing: [],
          lostCount: 0,
          quarantinedCount: 0,
          waiting: null,
        });
        const lossy = { agentId: id, sessionId: `${id}-lossy` };
        await ingest(
          target,
          [
            record(1, { ...lossy, event: started }),
            record(2, { ...lossy, kind: 'lost', event: undefined, lost: { count: 12, reason: 'outbox-full' } }),
            record(3, { ...lossy, kind: 'rumour' }),
            record(4, {
              ...lossy,
              kind: 'status',
              event: undefined,
              status: { outbox: { depth: 3, oldestAgeMs: 5, poisoned: 0, lost: 12 } },
            }),
          ],
          1,
          `${id}-b`,
        );
        const { missing, ...rest } = await delivery(`${id}-lossy`);
        expect(rest).toMatchObject({
          producers: [{ id: `${id}-b`, lastSeq: 4 }],
          lostCount: 12,
          quarantinedCount: 1,
          waiting: { count: 3 },
        });
        expect(missing).toMatchObject([
          { kind: 'quarantined', count: 1, seq: 3, reason: expect.stringContaining('kind is one of') },
          { kind: 'lost', count: 12, seq: null, reason: 'outbox-full' },
        ]);
        expect((await target.get('/api/v1/sessions/nowhere/delivery')).status).toBe(404);
      });

      test('can be filtered and searched, with counts by state of all matches', async () => {
        const of = (name: string, ...events: object[]) =>
          events.map((one) => ({ ...event(one as AgUiEvent), sessionId: `${id}-${name}` }));
        const writes = (role: string, delta: string) => [
          { type: 'TEXT_MESSAGE_START', messageId: `${role}-${delta}`, role },
          { type: 'TEXT_MESSAGE_CONTENT', messageId: `${role}-${delta}`, delta },
          { type: 'TEXT_MESSAGE_END', messageId: `${role}-${delta}` },
        ];
        const started = { type: 'RUN_STARTED', threadId: id, runId: 'r1' };
        const ended = { type: 'RUN_FINISHED', threadId: id, runId: 'r1' };
        await send(
          ...of('one', ...writes('user', `Mend the Zebra-${id}`), started),
          ...of('two', ...writes('user', `zebra-${id} again`), started, ended),
          ...of('three', started, ...writes('assistant', `It was zebra-${id}, ok`)),
          ...of('four', started, { type: 'RUN_ERROR', threadId: id, runId: 'r1', message: `no ZEBRA-${id}` }),
          ...of('five', started, ended),
        );
        const found = async (query: Record<string, string | string[]>) => {
          const params = new URLSearchParams();
          for (const [name, values] of Object.entries(query)) {
            for (const value of [values].flat()) params.append(name, value);
          }
          const whole = await read<SessionList>(`/sessions?${params}`);
          const paged: string[] = [];
          for (let after: string | null = '0'; after !== null; ) {
            const page: SessionList = await read<SessionList>(
              `/sessions?${params}&${new URLSearchParams({ after, limit: '1' })}`,
            );
            paged.push(...page.sessions.map((one) => one.id));
            after = page.next;
          }
          expect(paged).toEqual(whole.sessions.map((one) => one.id));
          return { names: paged.map((one) => one.slice(id.length + 1)).sort(), counts: whole.counts };
        };
        const q = `zebra-${id}`;
        expect(await found({ q })).toEqual({
          names: ['four', 'one', 'three', 'two'],
          counts: { ...noSessions(), failed: 1, working: 2, idle: 1 },
        });
        expect((await found({ q: `${q.toUpperCase()} mend` })).names).toEqual(['one']);
        expect((await found({ q: `${q} ok` })).names).toEqual(['three']);
        expect((await found({ q: `${id}-five` })).names).toEqual(['five']);
        expect((await found({ q, state: ['failed', 'idle'] })).names).toEqual(['four', 'two']);
        expect((await found({ agent: id, state: 'idle' })).names).toEqual(['five', 'two']);
        expect((await found({ agent: id, state: 'idle' })).counts).toMatchObject({ failed: 1, working: 2, idle: 2 });
        expect((await found({ q, agent: 'nobody' })).names).toEqual([]);
        expect((await found({ q: `"${q}" OR *` })).names).toEqual([]);
        // A replaced text is not found any more; the current text is, during the turn and after it.
        await send(...of('two', { ...started, runId: 'r2' }, ...writes('assistant', `A quagga-${id}`)));
        expect((await found({ q: `quagga-${id}` })).names).toEqual(['two']);
        await send(...of('two', { ...ended, runId: 'r2' }), ...of('three', ended, ...writes('assistant', 'Nothing')));
        expect((await found({ q: `quagga-${id}` })).names).toEqual(['two']);
        expect((await found({ q })).names).toEqual(['four', 'one', 'two']);
        for (const query of ['state=asleep', `q=${'x'.repeat(201)}`, `q=${q}&after=agent.1.x`]) {
          expect(await refusal(`/sessions?${query}`)).toMatchObject({ status: 400, code: 'invalid_argument' });
        }

        const { agent } = await read<AgentDetail>(`/agents/${id}`);
        expect(agent).toMatchObject({
          sessionCount: 5,
          sessionStates: { failed: 1, 'needs-input': 0, working: 1, idle: 3, exited: 0 },
        });
        const agents = await read<AgentList>(`/agents?q=${encodeURIComponent(id.toUpperCase())}`);
        expect(agents).toMatchObject({ agents: [{ id }], count: 1, next: null });
        expect(await read<AgentList>(`/agents?q=${id}-nobody`)).toMatchObject({ agents: [], count: 0 });
      });

      test('report their state one by one', async () => {
        await send(event({ type: 'RUN_STARTED', threadId: id, runId: 'r1' }));
        const open = await read<SessionDetail>(`/sessions/${id}`);
        expect(open.session).toMatchObject({ id, agentId: id, state: 'working', openTurnId: 'r1', turnCount: 1 });
        await send(event({ type: 'RUN_FINISHED', threadId: id, runId: 'r1' }));
        const closed = await read<SessionDetail>(`/sessions/${id}`);
        expect(closed.session).toMatchObject({ state: 'idle', openTurnId: null });
        expect(Number(closed.position)).toBeGreaterThan(Number(open.position));
      });

      test('are not found on any route when unknown', async () => {
        for (const path of ['', '/transcript', '/tasks', '/tasks/t1']) {
          expect(await refusal(`/sessions/${id}${path}`)).toMatchObject({ status: 404, code: 'not_found' });
        }
        expect(await refusal('/sessions/%00')).toMatchObject({ status: 404 });
      });

      test('are found by any id', async () => {
        const odd = `${id}/a b?%#ü\u{1f600}"`;
        await send({ ...event({ type: 'RUN_STARTED', threadId: odd, runId: 'r1' }), sessionId: odd });
        const { session } = await read<SessionDetail>(`/sessions/${encodeURIComponent(odd)}`);
        expect(session.id).toBe(odd);
      });
    });

    describe('a transcript', () => {
      test('has turns in order with their items', async () => {
        await send(...turn('r1', 'one'), ...turn('r2', 'two'));
        const page = await read<TranscriptPage>(`/sessions/${id}/transcript`);
        expect(page.hasMore).toBe(false);
        expect(page.turns.map(({ id: turnId, kind, state }) => [turnId, kind, state])).toEqual([
          ['r1', 'user', 'finished'],
          ['r2', 'user', 'finished'],
        ]);
        expect(page.turns.flatMap(({ items }) => items)).toMatchObject([
          { kind: 'message', role: 'assistant', text: 'one', streaming: false },
          { kind: 'message', role: 'assistant', text: 'two', streaming: false },
        ]);
      });

      test('is returned in pages from its end, by id or position of the first known turn', async () => {
        for (let index = 1; index <= 7; index += 1) await send(...turn(`r${index}`, `text ${index}`));
        const path = `/sessions/${id}/transcript?limit=3`;
        const newest = await read<TranscriptPage>(path);
        expect(ids(newest.turns)).toEqual(['r5', 'r6', 'r7']);
        expect(newest.hasMore).toBe(true);
        expect(newest.places).toBeDefined();
        const byId = await read<TranscriptPage>(`${path}&before=r5`);
        expect(ids(byId.turns)).toEqual(['r2', 'r3', 'r4']);
        expect(byId.hasMore).toBe(true);
        expect(byId.places).toBeUndefined();
        const byPosition = await read<TranscriptPage>(`${path}&before=${byId.turns[0]?.position}`);
        expect(ids(byPosition.turns)).toEqual(['r1']);
        expect(byPosition.hasMore).toBe(false);
        const none = await read<TranscriptPage>(`${path}&before=${byPosition.turns[0]?.position}`);
        expect(none).toMatchObject({ turns: [], hasMore: false });
      });

      test('refuses an impossible page with the reason', async () => {
        await send(...turn('r1', 'one'));
        for (const limit of ['0', '201', '-1', 'x', '1.5', '']) {
          const refused = await refusal(`/sessions/${id}/transcript?limit=${limit}`);
          expect(refused).toMatchObject({ status: 400, code: 'invalid_argument', limit });
        }
        const refused = await refusal(`/sessions/${id}/transcript?before=nowhere`);
        expect(refused).toMatchObject({ status: 400, code: 'invalid_argument', before: 'nowhere' });
      });

      test('a transcript continues in the stream from its position, without gaps or duplicates', async () => {
        const content = (delta: string) => event({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta });
        await send(
          ...turn('r1', 'one'),
          event({ type: 'RUN_STARTED', threadId: id, runId: 'r2' }),
          event({ type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' }),
          content('half '),
        );
        const page = await read<TranscriptPage>(`/sessions/${id}/transcript`);
        await send(content('and '), content('whole'), event({ type: 'TEXT_MESSAGE_END', messageId: 'm' }));
        await send(event(started), ...turn('r3', 'three').slice(1));
        const reader = await target.stream(`topic=session:${id}&after=${page.position}`);
        await reader.frame('up-to-date');
        const entries = reader.frames.flatMap((frame) =>
          frame.event === 'session-event' ? [{ position: frame.id ?? '', ...frame.data }] : [],
        );
        const live = foldTranscript(transcriptFromPage(page), entries);
        const reloaded = await read<TranscriptPage>(`/sessions/${id}/transcript`);
        expect(live.turns).toEqual(reloaded.turns);
        expect(live.places).toEqual(reloaded.places);
      });
    });

    describe('tasks', () => {
      test('are listed with running ones first, and the omitted are counted', async () => {
        const taskEvent = (name: string, at: number) =>
          event({ type: 'CUSTOM', name: `task:${name}`, value: { task_id: `t${at}`, description: `Task ${at}` } });
        const all = Array.from({ length: 1_200 }, (_, index) => index);
        await send(...all.map((at) => taskEvent('started', at)));
        await send(...all.filter((at) => at !== 3).map((at) => taskEvent('completed', at)));
        const list = await read<TaskList>(`/sessions/${id}/tasks`);
        expect(list.omitted).toBe(200);
        expect(list.tasks.map((task) => task.id)).toEqual(['t3', ...all.slice(-999).map((at) => `t${at}`)]);
        const stop = await target.send(`/api/v1/sessions/${id}/tasks/t3/stop`, {
          method: 'POST',
          headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
          body: '{}',
        });
        expect(stop.status).toBe(202);
      });

      test('are listed by start', async () => {
        const second = { type: 'CUSTOM', name: 'task:started', value: { task_id: 't2', description: 'the watch' } };
        const ended = {
          type: 'CUSTOM',
          name: 'task:completed',
          value: { task_id: 't1', status: 'failed', exit_code: 2 },
        };
        await send(
          event({ type: 'RUN_STARTED', threadId: id, runId: 'r1' }),
          event(started),
          event(second),
          event(ended),
        );
        const { tasks } = await read<TaskList>(`/sessions/${id}/tasks`);
        expect(tasks).toMatchObject([
          { id: 't1', sessionId: id, agentId: id, description: 'the build', status: 'failed', exitCode: 2 },
          { id: 't2', status: 'running', startedInTurnId: 'r1' },
        ]);
      });

      test('a task includes the output of its subagent, which is in no turn', async () => {
        const subagentMessage = { messageId: 'sub', subagentRunId: 't1' };
        await send(
          event({ type: 'RUN_STARTED', threadId: id, runId: 'r1' }),
          event(started),
          event({ type: 'TEXT_MESSAGE_START', role: 'assistant', ...subagentMessage }),
          event({ type: 'TEXT_MESSAGE_CONTENT', delta: 'three findings', ...subagentMessage }),
          event({ type: 'TEXT_MESSAGE_END', ...subagentMessage }),
        );
        const detail = await read<TaskDetail>(`/sessions/${id}/tasks/t1`);
        expect(detail.task.description).toBe('the build');
        expect(detail.items).toMatchObject([{ kind: 'message', text: 'three findings' }]);
        const { turns } = await read<TranscriptPage>(`/sessions/${id}/transcript`);
        expect(turns.flatMap(({ items }) => items.map(({ kind }) => kind))).toEqual(['task']);
        expect(await refusal(`/sessions/${id}/tasks/t2`)).toMatchObject({ status: 404, code: 'not_found' });
      });

      test('are kept apart by run when an agent reuses an id', async () => {
        for (const [index, runId] of ['x', 'y'].entries()) {
          const subagentMessage = { messageId: `sub-${runId}`, subagentRunId: 't1' };
          const value = { task_id: 't1', run_id: runId, description: `run ${runId}` };
          await send(
            event({ type: 'CUSTOM', name: 'task:started', value }),
            event({ type: 'TEXT_MESSAGE_START', role: 'assistant', ...subagentMessage }),
            event({ type: 'TEXT_MESSAGE_CONTENT', delta: `said in ${runId}`, ...subagentMessage }),
            event({ type: 'TEXT_MESSAGE_END', ...subagentMessage }),
            event({
              type: 'CUSTOM',
              name: 'task:completed',
              value: { ...value, status: 'completed', exit_code: index },
            }),
          );
        }
        const texts = (detail: TaskDetail) =>
          detail.items.flatMap((item) => (item.kind === 'message' ? [item.text] : []));
        const newest = await read<TaskDetail>(`/sessions/${id}/tasks/t1`);
        expect([newest.task.runId, texts(newest)]).toEqual(['y', ['said in y']]);
        const older = await read<TaskDetail>(`/sessions/${id}/tasks/t1?runId=x`);
        expect([older.task.runId, texts(older)]).toEqual(['x', ['said in x']]);
        expect(await refusal(`/sessions/${id}/tasks/t1?runId=z`)).toMatchObject({ status: 404 });
      });
    });

    describe('agents', () => {
      test('an agent lists its producers, sessions and quarantined records', async () => {
        await send(
          event({ type: 'RUN_STARTED', threadId: id, runId: 'r1' }),
          { kind: 'status', status: { kind: 'claude', state: 'working' } },
          { kind: 'novelty', sessionId: id, what: 'is this' },
          { kind: 'lost', lost: { count: 12, reason: 'outbox-full' } },
        );
        const { agents, count } = await read<AgentList>('/agents');
        expect(count).toBeGreaterThanOrEqual(agents.length);
        expect(agents.find((agent) => agent.id === id)).toMatchObject({
          kind: 'claude',
          status: { kind: 'claude', state: 'working' },
          sessionCount: 1,
          lostCount: 12,
          quarantinedCount: 1,
        });
        const detail = await read<AgentDetail>(`/agents/${id}`);
        expect(detail.agent).toEqual(agents.find((agent) => agent.id === id));
        expect(detail.producers).toMatchObject([{ id, epoch: 1, lastSeq: 4, accepted: 3, rejected: 1, lost: 12 }]);
        expect(detail.sessions.map((session) => session.id)).toEqual([id]);
        expect(detail.quarantine).toMatchObject([
          { seq: 3, code: 'unknown_kind', sessionId: id, record: { kind: 'novelty', what: 'is this' }, excerpt: null },
        ]);
      });

      test('list the most recent producers, and count all', async () => {
        for (let index = 0; index < 103; index += 1) {
          const line = { kind: 'log', sessionId: undefined, log: { level: 'info', component: 'c', message: 'm' } };
          await ingest(target, [record(1, { agentId: id, ...line })], 1, `${id}-${index}`);
        }
        const { producers, producerCount } = await read<AgentDetail>(`/agents/${id}`);
        expect([producers.length, producerCount]).toEqual([100, 103]);
        const shown = new Set(producers.map((producer) => producer.id));
        expect(shown.has(`${id}-102`)).toBe(true);
      });

      test('show the beginning of a long quarantined record', async () => {
        await send(
          { kind: 'novelty', what: `half a pair \ud800, a NUL \0, ${'😀'.repeat(300_000)}` },
          { kind: 'novelty', what: 'x'.repeat(1_000_000) },
        );
        const response = await target.get(`/api/v1/agents/${id}`);
        const body = await response.text();
        expect(body.length).toBeLessThan(20_000);
        const { quarantine } = JSON.parse(body) as AgentDetail;
        expect(quarantine.map(({ seq, record, size }) => [seq, record, size > 1_000_000])).toEqual([
          [2, null, true],
          [1, null, true],
        ]);
        const [ascii, astral] = quarantine.map(({ excerpt }) => excerpt ?? '');
        expect(ascii).toMatch(/^\{.*x$/s);
        expect([...(astral ?? '')]).toHaveLength(2_048);
        expect(astral).toContain('half a pair �, a NUL \\u0000, 😀😀');
      });

      test('are not found when unknown', async () => {
        expect(await refusal(`/agents/${id}`)).toMatchObject({ status: 404, code: 'not_found' });
        expect(await refusal(`/agents/${id}/logs`)).toMatchObject({ status: 404, code: 'not_found' });
      });
    });

    test('every read model has the position at which it was read', async () => {
      const { position } = await send(...turn('r1', 'one'), event(started));
      const ofSession = ['', '/transcript', '/tasks', '/tasks/t1', '/delivery'].map((path) => `/sessions/${id}${path}`);
      const paths = ['/sessions', ...ofSession, '/agents', `/agents/${id}`, `/agents/${id}/logs`, '/inbox'];
      // Other sessions change with time, so the position may advance meanwhile.
      let before = positionToNumber(position);
      for (const path of paths) {
        const at = positionToNumber((await read<SessionList>(path)).position);
        expect(at, path).toBeGreaterThanOrEqual(before);
        before = at;
      }
      const { position: after } = await send(event(started));
      expect(positionToNumber(after)).toBeGreaterThan(before);
    });
  });
}

async function nextMillisecond(): Promise<void> {
  for (const now = Date.now(); Date.now() === now; ) await new Promise((resolve) => setImmediate(resolve));
}
