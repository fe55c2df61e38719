import { setTimeout as pause } from 'node:timers/promises';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Fields } from '@interlude/protocol/fields';
import { comparePositions } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { requestDigest } from '@interlude/protocol/request-digest';
import { assert, assertMatch } from '../check';
import {
  custom,
  type FakeAgent,
  FakeOutbox,
  finished,
  itemsOf,
  type ServerTarget,
  type SseFrame,
  serverChecks,
  started,
  text,
} from './server-target';

const taskStarted = (task_id: string) => custom('task:started', { task_id, description: 'a poll' });
const taskCompleted = (task_id: string, status: string, more: Fields = {}) =>
  custom('task:completed', { task_id, status, ...more });

async function assertTurns(agent: FakeAgent, expected: Fields[]): Promise<void> {
  const seen = (await agent.turns()).map((turn) => ({ ...turn, items: itemsOf(turn) }));
  assertMatch('the turns', seen, expected);
}

const PLACE = 'Place events as lib/protocol/projections does: placeEvents, then foldItems.';

export const TURNS = serverChecks('turns', '4, Placement of events', {
  'a user turn has its message and then its content, in order': {
    todo: PLACE,
    async run({ agent }) {
      await agent.emit(
        ...text('m1', 'a question', 'user'),
        started('r1', { turn: 'user', userMessageIds: ['m1'] }),
        { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' },
        { type: 'TOOL_CALL_END', toolCallId: 'c1' },
        { type: 'TOOL_CALL_RESULT', messageId: 'c1/result', toolCallId: 'c1', content: 'done', role: 'tool' },
        ...text('m2', 'an answer'),
        finished('r1', { userMessageIds: ['m1'] }),
      );
      const items = ['message a question', 'tool-call Bash', 'message an answer'];
      await assertTurns(agent, [{ id: 'r1', kind: 'user', state: 'finished', userMessageIds: ['m1'], items }]);
    },
  },
  'a message is in the turn that names it, even if only at its end': {
    todo: PLACE,
    async run({ agent }) {
      await agent.emit(
        started('r1', { turn: 'user', userMessageIds: [] }),
        ...text('m1', 'in between', 'user'),
        ...text('m2', 'both'),
        finished('r1', { userMessageIds: ['m1'] }),
        ...text('m3', 'for the next one', 'user'),
        started('r2', { turn: 'user', userMessageIds: ['m3'] }),
        finished('r2', { userMessageIds: ['m3'] }),
      );
      await assertTurns(agent, [
        { id: 'r1', userMessageIds: ['m1'], items: ['message in between', 'message both'] },
        { id: 'r2', userMessageIds: ['m3'], items: ['message for the next one'] },
      ]);
    },
  },
  'a between-run turn starts with the end of the task that caused it': {
    todo: PLACE,
    async run({ agent }) {
      const trigger = { kind: 'task', taskIds: ['t1'] };
      await agent.emit(
        started('r1'),
        taskStarted('t1'),
        finished('r1'),
        taskCompleted('t1', 'failed', { exit_code: 3 }),
        started('r2', { turn: 'between-run', trigger }),
        ...text('m1', 'it exited with code 3'),
        finished('r2', { trigger }),
      );
      await assertTurns(agent, [
        { id: 'r1', kind: 'user', items: ['task started'] },
        { id: 'r2', kind: 'between-run', trigger, items: ['task failed', 'message it exited with code 3'] },
      ]);
    },
  },
  'a failed turn gives a reason, and a cancelled turn is interrupted': {
    todo: PLACE,
    async run({ agent }) {
      await agent.emit(
        started('r1'),
        { type: 'RUN_ERROR', runId: 'r1', message: 'no more tokens', code: 'quota' },
        started('r2'),
        finished('r2', {}, { outcome: { type: 'cancelled' } }),
        started('r3'),
        started('r4'),
      );
      await assertTurns(agent, [
        { id: 'r1', state: 'failed', error: { message: 'no more tokens', code: 'quota' } },
        { id: 'r2', state: 'interrupted' },
        { id: 'r3', state: 'interrupted' },
        { id: 'r4', state: 'open' },
      ]);
    },
  },
  'content outside turns appears by itself, in its place': {
    todo: PLACE,
    async run({ agent }) {
      await agent.emit(
        started('r1'),
        finished('r1'),
        ...text('m1', 'by the way'),
        started('r2'),
        ...text('m2', 'in a turn'),
        finished('r2'),
        ...text('m3', 'once more'),
      );
      await assertTurns(agent, [
        { id: 'r1', items: [] },
        { kind: 'none', items: ['message by the way'] },
        { id: 'r2', items: ['message in a turn'] },
        { kind: 'none', items: ['message once more'] },
      ]);
    },
  },
});

async function assertTasks(server: ServerTarget, sessionId: string, expected: Fields[], todo?: string): Promise<void> {
  const { tasks } = await server.read(`/sessions/${encodeURIComponent(sessionId)}/tasks`);
  assertMatch(`the tasks of ${sessionId}`, tasks, expected, todo);
}

export const TASKS = serverChecks('tasks', '3, Ingest, 11', {
  'a task ends once: a reported end replaces a presumed one and stays': {
    todo: 'Keep the first end; replace only `lost`.',
    async run({ agent, server }) {
      await agent.emit(
        taskStarted('t1'),
        taskCompleted('t1', 'failed', { exit_code: 3 }),
        taskCompleted('t1', 'completed'),
        taskStarted('t2'),
        taskCompleted('t2', 'lost'),
        taskCompleted('t2', 'completed'),
      );
      await assertTasks(server, agent.sessionId, [
        { id: 't1', status: 'failed', exitCode: 3 },
        { id: 't2', status: 'completed' },
      ]);
    },
  },
  'an end reported by another session goes to the session of the task and names the reporter': {
    todo: 'Store the end in the session that started the task, with metadata.interlude.reportedBy.',
    async run({ agent, server }) {
      const other = `${agent.id}/other`;
      await agent.emit(taskStarted('t1'));
      await agent.outbox.send(agent.event(taskCompleted('t1', 'failed', { exit_code: 3 }), other));
      await assertTasks(server, agent.sessionId, [{ id: 't1', status: 'failed', exitCode: 3, reportedBy: other }]);
      await assertTasks(server, other, []);
    },
  },
  'one id in two sessions is two tasks': {
    todo: 'Identify a task by its session and its id.',
    async run({ agent, server }) {
      const other = `${agent.id}/other`;
      await agent.emit(taskStarted('t1'));
      await agent.outbox.send(
        agent.event(taskStarted('t1'), other),
        agent.event(taskCompleted('t1', 'completed'), other),
      );
      await assertTasks(server, agent.sessionId, [{ status: 'running' }]);
      await assertTasks(server, other, [{ status: 'completed' }]);
    },
  },
  'a task without a provable session is parked until a person assigns it': {
    why: '3, Ingest, 11 and 7, Parked records',
    todo: 'Quarantine it as task_of_no_session, and list it under /parked.',
    async run({ agent, server }) {
      const other = `${agent.id}/other`;
      await agent.outbox.send(agent.event(custom('x')), agent.event(custom('x'), other));
      const response = await agent.emit(taskCompleted('t9', 'completed'));
      assertMatch('the response', response, { rejected: [{ seq: 3, code: 'task_of_no_session' }] });
      const path = `/agents/${encodeURIComponent(agent.id)}/parked`;
      const { records } = (await server.read(path)) as { records: { position: string }[] };
      assertMatch('the parked records', records, [{ seq: 3, parked: { state: 'parked', taskId: 't9' } }]);
      const assigned = { status: 200, state: 'assigned', sessionId: other, settled: 1 };
      await server.expect(`${path}/${records[0]?.position}/assign`, { sessionId: other }, assigned);
      await assertTasks(server, other, [{ id: 't9', status: 'completed' }], 'Store it in the assigned session.');
    },
  },
  'the end of a process marks its tasks as lost, with a reason': {
    why: '3, Status records',
    todo: 'End its tasks as lost, with the reason in error.',
    async run({ agent, server }) {
      await agent.emit(taskStarted('t1'), custom('session:ended', { reason: 'it crashed', exitCode: 1 }));
      const { tasks } = (await server.read(`${agent.path}/tasks`)) as { tasks: Fields[] };
      const hasReason = typeof tasks[0]?.error === 'string' && tasks[0].error !== '';
      assertMatch('the task', { ...tasks[0], hasReason }, { status: 'lost', hasReason: true });
    },
  },
});

const EXPIRES_MS = 50;
const requestOpened = (request_id: string, command: string, more: Fields = {}) =>
  custom('request:opened', {
    request_id,
    kind: 'permission',
    tool_name: 'Bash',
    input: { timeout: 5, command },
    ...more,
  });

async function lastRequest(agent: FakeAgent): Promise<Fields> {
  const items = (await agent.turns()).flatMap((turn) => turn.items as Fields[]);
  return items.findLast((item) => item.kind === 'request') ?? {};
}

export const REQUESTS = serverChecks('requests', '7, Answers to requests', {
  'the server computes the digest of a request, whatever the producer wrote': {
    todo: 'Compute it on the server: SHA-256 of the canonical JSON (RFC 8785).',
    async run({ agent }) {
      await agent.emit(started('r1'), requestOpened('q1', 'ls', { digest: 'forged', opened_position: '1' }));
      const { digest, openedPosition, position } = await lastRequest(agent);
      const input = { command: 'ls', timeout: 5 };
      const about = { sessionId: agent.sessionId, requestId: 'q1', tool: 'Bash', input, position: String(position) };
      const expected = { digest: requestDigest(about), openedPosition: position };
      assertMatch('the request', { digest, openedPosition }, expected);
    },
  },
  'a request is answered once, and the runner gets its digest': {
    todo: 'Send one permission.decision, with the digest and openedPosition of the request.',
    async run({ agent, server }) {
      const commands = await agent.commands();
      await agent.emit(started('r1'), requestOpened('q1', 'ls'));
      const { digest, openedPosition } = await lastRequest(agent);
      const path = `${agent.path}/requests/q1`;
      const body = { behavior: 'allow', digest, clientId: 'one' };
      await server.expect(path, body, { status: 202 });
      await server.expect(path, body, { status: 202 });
      const refusal = { status: 409, error: { code: 'conflict', reason: 'request_answered' } };
      await server.expect(path, { ...body, behavior: 'deny', clientId: 'two' }, refusal);
      const { data } = await commands.frame('command');
      const decision = { requestId: 'q1', digest, openedPosition, behavior: 'allow' };
      assertMatch('the command', data, { type: 'permission.decision', body: decision });
      commands.close();
    },
  },
  'an answer to an earlier request is refused with the current digest': {
    todo: 'Include the input in the digest.',
    async run({ agent, server }) {
      await agent.emit(started('r1'), requestOpened('q1', 'ls'));
      const { digest: before } = await lastRequest(agent);
      await agent.emit(requestOpened('q1', 'rm -r .'));
      const { digest: now } = await lastRequest(agent);
      assert(before !== now, 'a new digest for the new input', now);
      const refusal = { status: 409, error: { code: 'conflict', reason: 'request_changed', digest: now } };
      await server.expect(`${agent.path}/requests/q1`, { behavior: 'allow', digest: before }, refusal);
    },
  },
  'a run that ends with an interrupt opens a request, which the next run resolves with resume': {
    why: '4, Derived requests',
    todo: 'Derive a request from each of outcome.interrupts, and resolve those that a resume names.',
    async run({ agent }) {
      const interrupts = [{ id: 'i1', reason: 'tool_call', message: 'May I?' }];
      await agent.emit(started('r1'), finished('r1', {}, { outcome: { type: 'interrupt', interrupts } }));
      const opened = { id: 'i1', title: 'May I?', requestKind: 'permission', outcome: null };
      assertMatch('the request', await lastRequest(agent), opened);
      const resume = [{ interruptId: 'i1', status: 'resolved', payload: { approved: true } }];
      await agent.emit({ ...started('r2'), input: { resume } });
      assertMatch('the resumed request', await lastRequest(agent), { id: 'i1', outcome: 'allowed' });
    },
  },
  'an expired request can’t be answered': {
    todo: 'Refuse an answer after expires_at.',
    async run({ agent, server }) {
      const now = Date.now();
      const opened = { ...agent.event(requestOpened('q1', 'ls', { expires_at: now + EXPIRES_MS })), occurredAt: now };
      await agent.outbox.send(agent.event(started('r1')), opened);
      await pause(4 * EXPIRES_MS);
      const refusal = { status: 409, error: { code: 'conflict', reason: 'request_expired' } };
      await server.expect(`${agent.path}/requests/q1`, { behavior: 'allow' }, refusal);
    },
  },
});

const ROUNDS = 25;
const ONCE_IN_ORDER = 'Send each row of the topic once, in position order.';

/** Two producers write to one session at the same time. */
async function writeFromTwo(server: ServerTarget, agent: FakeAgent): Promise<void> {
  const other = new FakeOutbox(server, `${agent.outbox.id}/other`);
  const write = async (outbox: FakeOutbox, by: string) => {
    for (let index = 1; index <= ROUNDS; index += 1)
      await outbox.send(agent.event(custom('conformance:mark', { by, at: index })));
  };
  await Promise.all([write(agent.outbox, 'one'), write(other, 'other')]);
}

/** @throws CheckFailed unless each producer's marks came once and in order, at ascending positions */
function assertOnceInOrder(frames: readonly SseFrame[]): void {
  const numbers = Array.from({ length: ROUNDS }, (_, index) => index + 1);
  const values = frames.map(({ data }) => (data.event as { value?: Fields }).value ?? {});
  for (const by of ['one', 'other']) {
    const marks = values.filter((value) => value.by === by).map(({ at }) => at);
    assertMatch(`the marks of ${by}`, marks, numbers, ONCE_IN_ORDER);
  }
  const ids = frames.map(({ id }) => id ?? '0');
  const odd = ids.findIndex((id, index) => index > 0 && comparePositions(ids[index - 1] ?? '0', id) >= 0);
  assert(odd < 0, 'ascending positions', ids.slice(Math.max(0, odd - 1), odd + 1), ONCE_IN_ORDER);
}

export const ORDER = serverChecks('order', '5, Live', {
  'a stream has every event once, with ascending positions, while two outboxes write': {
    todo: 'Send what is stored while a stream is open.',
    async run({ agent, server }) {
      const { position } = await agent.emit(custom('x'));
      const stream = await agent.stream(`&after=${position}`);
      await writeFromTwo(server, agent);
      await server.waitFor(`${2 * ROUNDS} events`, () => stream.named('session-event').length >= 2 * ROUNDS);
      stream.close();
      assertOnceInOrder(stream.named('session-event'));
    },
  },
  'an interrupted stream resumes after the last received event': {
    todo: 'Resume after Last-Event-ID, which wins over `after`, from the database.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      await writeFromTwo(server, agent);
      const frames: SseFrame[] = [];
      for (const upTo of [7, 20, 33, 2 * ROUNDS]) {
        const stream = await agent.stream('&after=0', { 'last-event-id': frames.at(-1)?.id ?? '0' });
        const { data } = await stream.frame('hello');
        assertMatch('hello', data, { resume: 'ok' });
        const hasEnough = () => frames.length + stream.named('session-event').length >= upTo;
        await server.waitFor(`${upTo} events`, hasEnough);
        stream.close();
        const marks = stream
          .named('session-event')
          .filter((frame) => (frame.data.event as AgUiEvent).name === 'conformance:mark');
        frames.push(...marks.slice(0, upTo - frames.length));
      }
      assertOnceInOrder(frames);
    },
  },
  'a transcript folded from the stream equals the one loaded at the same position': {
    todo: 'Stream the events as they are stored, and fold them with the server’s own projections.',
    async run({ agent, server }) {
      await agent.emit(...text('m0', 'first', 'user'), started('r1', { turn: 'user', userMessageIds: ['m0'] }));
      const load = async () => (await server.read(`${agent.path}/transcript`)) as unknown as TranscriptPage;
      const before = await load();
      const stream = await agent.stream(`&after=${before.position}`);
      const [start, , end] = text('m1', '') as [AgUiEvent, AgUiEvent, AgUiEvent];
      const deltas = ['one ', 'two ', 'three'].map((delta) => ({
        type: 'TEXT_MESSAGE_CONTENT',
        messageId: 'm1',
        delta,
      }));
      for (const event of [start, ...deltas, end]) await agent.emit(event);
      await agent.emit(
        taskStarted('t1'),
        finished('r1', { userMessageIds: ['m0'] }),
        taskCompleted('t1', 'completed'),
        started('r2', { turn: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] } }),
        ...text('m2', 'woken'),
        custom('request:opened', { request_id: 'q1', kind: 'question', title: 'Which?', input: {} }),
      );
      const loaded = await load();
      const last = loaded.turns.at(-1)?.items.at(-1)?.position ?? '0';
      const frames = () => stream.named('session-event');
      await server.waitFor('the last event', () => frames().some(({ id }) => comparePositions(id ?? '0', last) >= 0));
      stream.close();
      const entries = frames().map(
        ({ id, data }): EventEntry => ({
          position: id ?? '0',
          occurredAt: Number(data.occurredAt),
          receivedAt: Number(data.receivedAt),
          event: data.event as AgUiEvent,
        }),
      );
      const folded = foldTranscript(transcriptFromPage(before), entries);
      assertMatch('the folded transcript', folded.turns, loaded.turns);
      assertMatch('the loaded transcript', loaded.turns, folded.turns);
    },
  },
});
