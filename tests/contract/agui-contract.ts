import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Command } from '@interlude/protocol/commands';
import type { CommandFrame } from '@interlude/protocol/sse';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ClientEvent, Dialect } from '@/lib/server/agui/client-events';
import { rejectionOf, undeclaredFieldIn } from '../support/agui-verifier';
import { FrameReader } from '../support/frames';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';
import { type StrictClient, strictClient } from '../support/strict-clients';

const DIALECTS: Dialect[] = ['1.0', '0.0.59'];

/** `POST /agui/:agentId` as AG-UI clients use it. Each test has its own agent and session. */
export function describeAgUiContract(
  name: string,
  makeTarget: () => Promise<ServerTarget>,
  { isLive }: { isLive: boolean },
): void {
  describe(`AG-UI, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;
    const readers: FrameReader[] = [];

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(async () => {
      vi.restoreAllMocks();
      await Promise.all(readers.map((reader) => reader.cancel().catch(() => {})));
      await target.close();
    });
    beforeEach(() => {
      serial += 1;
      id = `agui-${serial}`;
      seq = 0;
    });

    const send = (...events: AgUiEvent[]) =>
      ingest(
        target,
        events.map((event) => record(++seq, { agentId: id, sessionId: id, event })),
        1,
        id,
      );
    const custom = (eventName: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name: eventName, value });
    const starts = (runId: string, ids: string[] = [], more: object = {}): AgUiEvent => ({
      type: 'RUN_STARTED',
      threadId: id,
      runId,
      metadata: { interlude: { turn: 'user', userMessageIds: ids, ...more } },
    });
    const betweenRun = (runId: string, taskId: string) =>
      starts(runId, [], { turn: 'between-run', trigger: { kind: 'task', taskIds: [taskId] } });
    const ends = (runId: string, ids: string[] = [], more: object = {}): AgUiEvent => ({
      type: 'RUN_FINISHED',
      threadId: id,
      runId,
      metadata: { interlude: { userMessageIds: ids } },
      ...more,
    });
    const opens = (messageId: string): AgUiEvent => ({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' });
    const writes = (messageId: string, delta: string): AgUiEvent => ({
      type: 'TEXT_MESSAGE_CONTENT',
      messageId,
      delta,
    });
    const closes = (messageId: string): AgUiEvent => ({ type: 'TEXT_MESSAGE_END', messageId });
    const text = (messageId: string, whole: string) => [opens(messageId), writes(messageId, whole), closes(messageId)];
    const calls = (toolCallId: string): AgUiEvent[] => [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: 'Bash' },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: '{"command":"make"}' },
      { type: 'TOOL_CALL_END', toolCallId },
    ];
    const permission = (requestId: string, more: object = {}) =>
      custom('request:opened', {
        request_id: requestId,
        kind: 'permission',
        tool_name: 'Bash',
        title: 'Run make?',
        tool_use_id: 'c1',
        input: { command: 'make' },
        ...more,
      });
    const resolved = (requestId: string, outcome: string) =>
      custom('request:resolved', { request_id: requestId, outcome });

    /** A connected runner: the server counts its agent as connected. */
    async function runner() {
      const response = await target.get(`/api/v1/agents/${id}/commands?runner=r-${id}&startedAt=1`);
      if (response.status !== 200 || response.body === null) throw new Error(await response.text());
      const reader = new FrameReader(response.body);
      readers.push(reader);
      const handled = new Set<string>();
      const all = () =>
        (reader.frames as unknown as CommandFrame[]).flatMap((frame) =>
          frame.event === 'command' ? [frame.data] : [],
        );
      const fresh = (type: Command['type']) =>
        all().find((command) => command.type === type && !handled.has(command.id));
      return {
        all,
        async next<Type extends Command['type']>(type: Type): Promise<Extract<Command, { type: Type }>> {
          await reader.until(() => fresh(type) !== undefined);
          const command = fresh(type) as Extract<Command, { type: Type }>;
          handled.add(command.id);
          await target.send(`/api/v1/agents/${id}/commands/${command.id}/ack`, {
            method: 'POST',
            headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
            body: JSON.stringify({ state: command.type === 'message' ? 'delivered' : 'done' }),
          });
          return command;
        },
      };
    }

    const startSession = async () => {
      await send(custom('session:started', {}));
      return runner();
    };

    /** Sends through this target, or over the network like any client. */
    const fetchFromTarget: typeof fetch = (url, init) => {
      const { pathname, search } = new URL(String(url));
      return target.send(
        `${pathname}${search}`,
        init as { method: string; headers: Record<string, string>; body: string },
      );
    };
    const client = (dialect: Dialect, path = `/api/v1/agui/${id}`, threadId = id): StrictClient =>
      strictClient(dialect, {
        url: `${target.origin}${path}`,
        token: target.token,
        threadId,
        ...(isLive ? {} : { fetch: fetchFromTarget }),
      });

    /** Events of a client's runs, accepted by both verifiers. */
    function recordEvents(dialect: Dialect) {
      const events: ClientEvent[] = [];
      const subscriber = { onEvent: ({ event }: { event: ClientEvent }) => void events.push(event) };
      return {
        events,
        subscriber,
        types: () => events.map(({ type }) => type),
        customs: (customName: string) => events.filter((event) => event.name === customName).map(({ value }) => value),
        runs: () => events.filter(({ type }) => type === 'RUN_STARTED').map(({ runId }) => runId),
        expectStrict: () => expect([rejectionOf(events, dialect), undeclaredFieldIn(events)]).toEqual([null, null]),
      };
    }
    const historyOf = ({ messages }: StrictClient) =>
      messages.map(({ role, content, toolCalls }) => [
        role,
        content ?? (toolCalls as { id: string }[]).map((one) => one.id),
      ]);
    const ask = (agent: StrictClient, content: string, messageId: string = crypto.randomUUID()) =>
      agent.addMessage({ id: messageId, role: 'user', content });

    const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
      target.send(path, {
        method: 'POST',
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
    const input = (more: object = {}) => ({
      threadId: id,
      runId: 'asked',
      messages: [],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
      ...more,
    });
    /** All text of a stream, once it has ended. */
    async function eventsOf(response: Response): Promise<ClientEvent[]> {
      expect([response.status, response.headers.get('content-type')]).toEqual([
        200,
        'text/event-stream; charset=utf-8',
      ]);
      const body = await response.text();
      expect(body).not.toContain('\r');
      return body
        .split('\n\n')
        .flatMap((block) => (block.startsWith('data: ') ? [JSON.parse(block.slice(6)) as ClientEvent] : []));
    }

    describe.each(DIALECTS)('a client of %s', (dialect) => {
      test('delivers its message to the agent, and gets the run that answers it', async () => {
        const agent = await startSession();
        const one = client(dialect);
        const its = recordEvents(dialect);
        ask(one, 'Deploy it');
        const running = one.runAgent({ runId: 'asked' }, its.subscriber);
        const { body } = await agent.next('message');
        expect(body).toMatchObject({ text: 'Deploy it', from: { kind: 'person', id: 'operator' } });
        await send(starts('r1', [body.messageId]), opens('m1'), writes('m1', 'On '));
        await send(writes('m1', 'it.'), closes('m1'), ...calls('c1'));
        await send(
          { type: 'TOOL_CALL_RESULT', messageId: 'x', toolCallId: 'c1', content: 'ok' },
          ends('r1', [body.messageId]),
        );
        await running;
        its.expectStrict();
        expect(its.runs()).toEqual(['asked']);
        expect(historyOf(one)).toEqual([
          ['user', 'Deploy it'],
          ['assistant', 'On it.'],
          ['assistant', ['c1']],
          ['tool', 'ok'],
        ]);
      });

      test('has a repeated message delivered once, and gets its answer again', async () => {
        const agent = await startSession();
        const first = client(dialect);
        ask(first, 'Once', 'u1');
        const running = first.runAgent({ runId: 'first' });
        const { body } = await agent.next('message');
        await send(starts('r1', [body.messageId]), ...text('m1', 'Done.'), ends('r1', [body.messageId]));
        await running;
        const again = client(dialect);
        ask(again, 'Once', 'u1');
        await again.runAgent({ runId: 'again' });
        expect(historyOf(again)).toEqual([
          ['user', 'Once'],
          ['assistant', 'Done.'],
        ]);
        expect(agent.all().filter(({ type }) => type === 'message')).toHaveLength(1);
      });

      test('gets only the answering turn when it writes during another turn', async () => {
        const agent = await startSession();
        await send(starts('r1', ['other']), opens('m1'), writes('m1', 'not '));
        const one = client(dialect);
        const its = recordEvents(dialect);
        ask(one, 'And mine?');
        const running = one.runAgent({ runId: 'asked' }, its.subscriber);
        const { body } = await agent.next('message');
        await send(writes('m1', 'yours'), closes('m1'), ends('r1', ['other']));
        await send(starts('r2', [body.messageId]), ...text('m2', 'Yours.'), ends('r2', [body.messageId]));
        await running;
        its.expectStrict();
        expect(its.runs()).toEqual(['asked']);
        expect(historyOf(one)).toEqual([
          ['user', 'And mine?'],
          ['assistant', 'Yours.'],
        ]);
      });

      test('gets the whole current turn when that turn accepts its message', async () => {
        const agent = await startSession();
        await send(starts('r1', ['other']), opens('m1'), writes('m1', 'First '));
        const one = client(dialect);
        const its = recordEvents(dialect);
        ask(one, 'Faster');
        const running = one.runAgent({ runId: 'asked' }, its.subscriber);
        const { body } = await agent.next('message');
        await send(writes('m1', 'this.'), closes('m1'), ...text('m2', 'Then faster.'));
        await send(ends('r1', ['other', body.messageId]));
        await running;
        its.expectStrict();
        expect(its.runs()).toEqual(['asked']);
        expect(historyOf(one)).toEqual([
          ['user', 'Faster'],
          ['assistant', 'First this.'],
          ['assistant', 'Then faster.'],
        ]);
      });

      test('gets the agent’s request, answers it, and gets the rest of the turn', async () => {
        const agent = await startSession();
        const one = client(dialect);
        const its = recordEvents(dialect);
        ask(one, 'Build');
        const running = one.runAgent({ runId: 'first' }, its.subscriber);
        const { body } = await agent.next('message');
        await send(
          starts('r1', [body.messageId]),
          opens('m1'),
          writes('m1', 'I need'),
          ...calls('c1'),
          permission('q1'),
        );
        await running;
        its.expectStrict();
        const [interrupt] = one.pendingInterrupts;
        expect(one.pendingInterrupts).toEqual([
          expect.objectContaining({ reason: 'tool_call', message: 'Run make?', toolCallId: 'c1' }),
        ]);
        expect(interrupt?.id).toMatch(/^q1@[0-9a-f]{16}$/);
        // The agent continues before the person answers.
        await send(writes('m1', ' make'));
        const resume = [{ interruptId: interrupt?.id, status: 'resolved', payload: { approved: true } }];
        const resuming = one.runAgent({ runId: 'second', resume }, its.subscriber);
        const decision = await agent.next('permission.decision');
        expect(decision.body).toMatchObject({ requestId: 'q1', behavior: 'allow', digest: expect.any(String) });
        await send(resolved('q1', 'allowed'), writes('m1', ', and have it.'), closes('m1'), {
          type: 'TOOL_CALL_RESULT',
          messageId: 'x',
          toolCallId: 'c1',
          content: 'built',
        });
        await send(ends('r1', [body.messageId]));
        await resuming;
        its.expectStrict();
        expect(its.runs()).toEqual(['first', 'second']);
        expect(its.customs('interlude:resumed')).toEqual([
          { interruptId: interrupt?.id, requestId: 'q1', state: 'given', outcome: null },
        ]);
        expect(historyOf(one)).toEqual([
          ['user', 'Build'],
          ['assistant', 'I need make, and have it.'],
          ['assistant', ['c1']],
          ['tool', 'built'],
        ]);
        expect(one.pendingInterrupts).toEqual([]);
      });

      test('gets a notice and changes nothing when someone else has answered the request', async () => {
        const agent = await startSession();
        const one = client(dialect);
        const its = recordEvents(dialect);
        ask(one, 'Build');
        const running = one.runAgent({ runId: 'first' }, its.subscriber);
        const { body } = await agent.next('message');
        await send(starts('r1', [body.messageId]), permission('q1'));
        await running;
        await send(resolved('q1', 'denied'), ...text('m1', 'Then not.'), ends('r1', [body.messageId]));
        const resume = [{ interruptId: one.pendingInterrupts[0]?.id, status: 'resolved', payload: { approved: true } }];
        await one.runAgent({ runId: 'second', resume }, its.subscriber);
        its.expectStrict();
        expect(its.customs('interlude:resumed')).toEqual([
          expect.objectContaining({ state: 'too-late', outcome: 'denied' }),
        ]);
        expect(agent.all().map(({ type }) => type)).toEqual(['message']);
        expect(one.pendingInterrupts).toEqual([]);
      });

      test('gets tasks and the turns they start as runs of their own when it follows the session', async () => {
        const agent = await startSession();
        const one = client(dialect);
        const its = recordEvents(dialect);
        ask(one, 'Poll');
        const forwardedProps = { interlude: { follow: { seconds: 60 } } };
        const running = one.runAgent({ runId: 'asked', forwardedProps }, its.subscriber);
        const { body } = await agent.next('message');
        await send(
          starts('r1', [body.messageId]),
          custom('task:started', { task_id: 't1', description: 'poll' }),
          ...text('m1', 'Polling.'),
          ends('r1', [body.messageId]),
        );
        await expect.poll(() => its.types().filter((type) => type === 'RUN_FINISHED')).toHaveLength(1);
        expect(one.isRunning).toBe(true);
        await send(custom('task:completed', { task_id: 't1', status: 'completed', exit_code: 3 }));
        await send(betweenRun('r2', 't1'), ...text('m2', 'It ended with 3.'), ends('r2'));
        await running;
        its.expectStrict();
        expect(its.runs()[0]).toBe('asked');
        expect(its.runs().at(-1)).toBe('r2');
        expect(its.events.findLast(({ type }) => type === 'RUN_STARTED')).toMatchObject({
          metadata: { interlude: { turn: 'between-run', turnId: 'r2', trigger: { taskIds: ['t1'] } } },
        });
        expect(one.messages.filter(({ role }) => role === 'activity')).toEqual([
          expect.objectContaining({
            id: 'task:t1',
            activityType: 'interlude-task',
            content: expect.objectContaining({ taskId: 't1', description: 'poll', status: 'completed', exitCode: 3 }),
          }),
        ]);
        expect(its.customs('task:completed')).toHaveLength(1);
        expect(historyOf(one).filter(([role]) => role === 'assistant')).toEqual([
          ['assistant', 'Polling.'],
          ['assistant', 'It ended with 3.'],
        ]);
      });

      test('gets a history that replaces its own, then the current turn and later events, when it reconnects', async () => {
        await startSession();
        await send(...text('u1', 'Hello').map((event) => ({ ...event, ...(event.role ? { role: 'user' } : {}) })));
        await send(starts('r1', ['u1']), ...text('m1', 'Hi.'), ...calls('c1'), ends('r1', ['u1']));
        await send(starts('r2', []), opens('m2'), writes('m2', 'Half'));
        const one = client(dialect, `/api/v1/agui/${id}/connect`);
        one.setMessages([
          { id: 'u1', role: 'user', content: 'Hello' },
          { id: 'm1', role: 'assistant', content: 'H' },
        ]);
        const its = recordEvents(dialect);
        const running = one.runAgent(
          { runId: 'back', forwardedProps: { interlude: { follow: { seconds: 3 } } } },
          its.subscriber,
        );
        await expect.poll(() => its.types()).toContain('MESSAGES_SNAPSHOT');
        await send(writes('m2', ' and half'), closes('m2'), ends('r2'));
        await expect.poll(() => its.types().filter((type) => type === 'RUN_FINISHED')).toHaveLength(2);
        await send(betweenRun('r3', 't'), ...text('m3', 'Later.'), ends('r3'));
        await running;
        its.expectStrict();
        expect(its.runs()).toEqual(['back', 'r2', 'r3']);
        expect(historyOf(one)).toEqual([
          ['user', 'Hello'],
          ['assistant', 'Hi.'],
          ['assistant', ['c1']],
          ['assistant', 'Half and half'],
          ['assistant', 'Later.'],
        ]);
      });

      test('gets the error of a failed and of an aborted turn', async () => {
        const agent = await startSession();
        const one = client(dialect);
        const its = recordEvents(dialect);
        ask(one, 'Fail');
        const failing = one.runAgent({ runId: 'first' }, its.subscriber);
        const first = await agent.next('message');
        await send(starts('r1', [first.body.messageId]), opens('m1'), {
          type: 'RUN_ERROR',
          message: 'no credit',
          code: 'c',
        });
        await failing;
        expect(its.events.at(-1)).toMatchObject({ type: 'RUN_ERROR', message: 'no credit', code: 'c' });
        ask(one, 'Stop');
        const stopping = one.runAgent({ runId: 'second' }, its.subscriber);
        const second = await agent.next('message');
        await send(starts('r2', [second.body.messageId]), opens('m2'), writes('m2', 'x'));
        await send(ends('r2', [second.body.messageId], { outcome: { type: 'cancelled' } }));
        await stopping;
        its.expectStrict();
        const outcome = { type: dialect === '1.0' ? 'cancelled' : 'success' };
        expect(its.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome });
        expect(its.customs('interlude:run-cancelled')).toEqual(dialect === '1.0' ? [] : [{ runId: 'second' }]);
      });
    });

    test('places another person’s message before its answer', async () => {
      await startSession();
      const one = client('1.0', `/api/v1/agui/${id}/connect`);
      const its = recordEvents('1.0');
      const running = one.runAgent({ forwardedProps: { interlude: { follow: { seconds: 2 } } } }, its.subscriber);
      await expect.poll(() => its.types()).toContain('MESSAGES_SNAPSHOT');
      const sent = await post(`/api/v1/sessions/${id}/messages`, { text: 'From the dashboard', clientId: 'd1' });
      const { messageId } = await sent.json();
      await send(starts('r1', [messageId]), ...text('m1', 'To the dashboard.'), ends('r1', [messageId]));
      await running;
      its.expectStrict();
      expect(historyOf(one)).toEqual([
        ['user', 'From the dashboard'],
        ['assistant', 'To the dashboard.'],
      ]);
    });

    test('does not send another person’s unanswered message again', async () => {
      const agent = await startSession();
      const sent = await post(`/api/v1/sessions/${id}/messages`, { text: 'From the dashboard', clientId: 'd1' });
      const { messageId } = await sent.json();
      const messages = [
        { id: messageId, role: 'user', content: 'From the dashboard' },
        { id: 'u1', role: 'user', content: 'From the client' },
      ];
      const answer = eventsOf(await post(`/api/v1/agui/${id}`, input({ messages })));
      const first = await agent.next('message');
      const { body } = await agent.next('message');
      expect([first.body.text, body.text]).toEqual(['From the dashboard', 'From the client']);
      await send(starts('r1', [messageId, body.messageId]), ...text('m1', 'To both.'));
      await send(ends('r1', [messageId, body.messageId]));
      expect((await answer).filter(({ type }) => type === 'RUN_STARTED')).toMatchObject([{ runId: 'asked' }]);
      expect(agent.all().filter(({ type }) => type === 'message')).toHaveLength(2);
    });

    test('sends the agent’s open question to a client whose message waits behind it', async () => {
      const agent = await startSession();
      await send(
        starts('r1', ['other']),
        permission('q1', { kind: 'question', input: { questions: [{ question: 'Which?' }] } }),
      );
      const one = client('1.0');
      ask(one, 'Next', 'u1');
      await one.runAgent({ runId: 'first' });
      expect(one.pendingInterrupts).toEqual([expect.objectContaining({ reason: 'input_required' })]);
      const resume = [{ interruptId: one.pendingInterrupts[0]?.id, status: 'resolved', payload: 'The red one' }];
      const running = one.runAgent({ runId: 'second', resume });
      const { body } = await agent.next('question.answer');
      expect(body).toMatchObject({ requestId: 'q1', answers: { 'Which?': 'The red one' } });
      const message = await agent.next('message');
      await send(resolved('q1', 'answered'), ...text('m1', 'Red.'), ends('r1', ['other']));
      await send(starts('r2', [message.body.messageId]), ...text('m2', 'Next.'), ends('r2', [message.body.messageId]));
      await running;
      expect(historyOf(one)).toEqual([
        ['user', 'Next'],
        ['assistant', 'Red.'],
        ['assistant', 'Next.'],
      ]);
      expect(agent.all().filter(({ type }) => type === 'message')).toHaveLength(1);
    });

    test('refuses an answer to an earlier request with the same id, and sends the current one', async () => {
      const agent = await startSession();
      await send(starts('r1'), permission('q1'));
      const one = client('1.0');
      await one.runAgent({ runId: 'first' });
      const [before] = one.pendingInterrupts;
      await send(permission('q1', { input: { command: 'rm -rf /' } }));
      const resume = [{ interruptId: before?.id, status: 'resolved', payload: { approved: true } }];
      const its = recordEvents('1.0');
      await one.runAgent({ runId: 'second', resume }, its.subscriber);
      its.expectStrict();
      expect(its.customs('interlude:resumed')).toEqual([expect.objectContaining({ state: 'too-late' })]);
      expect(agent.all()).toEqual([]);
      expect(one.pendingInterrupts).toEqual([
        expect.objectContaining({
          metadata: { interlude: expect.objectContaining({ input: { command: 'rm -rf /' } }) },
        }),
      ]);
      expect(one.pendingInterrupts[0]?.id).not.toBe(before?.id);
    });

    test('ends a run that ends with a request as an interrupt', async () => {
      const agent = await startSession();
      const one = client('1.0');
      ask(one, 'Go');
      const running = one.runAgent({ runId: 'first' });
      const { body } = await agent.next('message');
      const interrupts = [{ id: 'i1', reason: 'tool_call', message: 'May I?', toolCallId: 'c1' }];
      await send(
        starts('r1', [body.messageId]),
        ...calls('c1'),
        ends('r1', [body.messageId], { outcome: { type: 'interrupt', interrupts } }),
      );
      await running;
      expect(one.pendingInterrupts).toEqual([expect.objectContaining({ message: 'May I?', toolCallId: 'c1' })]);
    });

    test('interrupts nothing when a client disconnects', async () => {
      const agent = await startSession();
      const messages = [{ id: 'u1', role: 'user', content: 'Go on' }];
      const response = await post(`/api/v1/agui/${id}`, input({ messages }));
      const { body } = await agent.next('message');
      await response.body?.cancel();
      await send(starts('r1', [body.messageId]), ...text('m1', 'Done.'), ends('r1', [body.messageId]));
      expect(agent.all().map(({ type }) => type)).toEqual(['message']);
    });

    test('finishes the run at once when there is no new message', async () => {
      await startSession();
      await send(...text('m1', 'Hi.'));
      const events = await eventsOf(await post(`/api/v1/agui/${id}`, input()));
      expect(events.map(({ type, runId }) => [type, runId])).toEqual([
        ['RUN_STARTED', 'asked'],
        ['RUN_FINISHED', 'asked'],
      ]);
    });

    test('ends the run with the reason when a message can’t be delivered', async () => {
      const agent = await startSession();
      const messages = [{ id: 'u1', role: 'user', content: 'Go on' }];
      const response = await post(`/api/v1/agui/${id}`, input({ messages }));
      const command = await agent.next('message');
      await target.send(`/api/v1/agents/${id}/commands/${command.id}/ack`, {
        method: 'POST',
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ state: 'failed', reason: 'it is full' }),
      });
      expect(await eventsOf(response)).toMatchObject([
        { type: 'RUN_ERROR', code: 'message_failed', message: expect.stringContaining('it is full') },
      ]);
    });

    test('ends the run with an explanation when the process ends', async () => {
      const agent = await startSession();
      const messages = [{ id: 'u1', role: 'user', content: 'Go on' }];
      const response = await post(`/api/v1/agui/${id}`, input({ messages }));
      const { body } = await agent.next('message');
      await send(
        starts('r1', [body.messageId]),
        opens('m1'),
        writes('m1', 'x'),
        custom('session:ended', { reason: 'killed' }),
      );
      const events = await eventsOf(response);
      expect([rejectionOf(events, '0.0.59'), undeclaredFieldIn(events)]).toEqual([null, null]);
      expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'session_ended' });
    });

    describe('a thread', () => {
      test('is named by the address or by the client’s forwarded properties', async () => {
        await startSession();
        await send(...text('m1', 'Hi.'));
        const threadId = 'random';
        const byAddress = await eventsOf(await post(`/api/v1/agui/${id}?session=${id}`, input({ threadId })));
        const forwardedProps = { interlude: { sessionId: id } };
        const byProps = await eventsOf(await post(`/api/v1/agui/${id}`, input({ threadId, forwardedProps })));
        for (const [first] of [byAddress, byProps]) expect(first).toMatchObject({ type: 'RUN_STARTED', threadId });
      });

      test('is refused when it is no session of the agent, with the way to list them', async () => {
        await startSession();
        const unknown = await post(`/api/v1/agui/${id}`, input({ threadId: 'random' }));
        expect([unknown.status, (await errorOf(unknown)).message]).toEqual([
          404,
          expect.stringContaining(`/sessions?agent=${id}`),
        ]);
        const other = await post('/api/v1/agui/nobody', input());
        expect([other.status, (await errorOf(other)).code]).toEqual([404, 'not_found']);
        const id2 = `${id}-other`;
        await ingest(
          target,
          [record(1, { agentId: id2, sessionId: id2, event: custom('session:started', {}) })],
          1,
          id2,
        );
        expect((await post(`/api/v1/agui/${id}`, input({ threadId: id2 }))).status).toBe(404);
      });
    });

    test.each<[string, unknown]>([
      ['no body', ''],
      ['no JSON', '{'],
      ['a list', []],
      ['no runId', { threadId: 't' }],
      ['a message without text', { threadId: 't', runId: 'r', messages: [{ id: 'u', role: 'user', content: [] }] }],
      ['a resume without a status', { threadId: 't', runId: 'r', resume: [{ interruptId: 'i' }] }],
      ['an invalid follow', { threadId: 't', runId: 'r', forwardedProps: { interlude: { follow: 'yes' } } }],
    ])('refuses an input with %s before it opens a stream', async (_, body) => {
      const response = await post('/api/v1/agui/anybody', body);
      expect([response.status, response.headers.get('content-type')]).toEqual([400, 'application/json']);
      expect((await errorOf(response)).message).not.toBe('');
    });

    test('refuses an answer without a decision, and keeps the request open', async () => {
      await startSession();
      await send(starts('r1'), permission('q1'));
      const resume = [{ interruptId: 'q1', status: 'resolved', payload: { text: 'well' } }];
      const response = await post(`/api/v1/agui/${id}`, input({ resume }));
      expect([response.status, (await errorOf(response)).message]).toEqual([
        400,
        expect.stringContaining('{"approved": true}'),
      ]);
    });
  });
}
