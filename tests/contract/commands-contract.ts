import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Command } from '@interlude/protocol/commands';
import { INTERRUPT_EXPIRY_MS, MAX_MESSAGE_BYTES, MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import type { Item, MessageItem, NoticeItem, RequestItem, TranscriptPage } from '@interlude/protocol/read-models';
import type { CommandFrame } from '@interlude/protocol/sse';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FrameReader } from '../support/frames';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** Commands end to end: posted over HTTP, read from a runner's stream, acknowledged and shown. */
export function describeCommandsContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`commands, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;
    const readers: FrameReader[] = [];

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(async () => {
      await Promise.all(readers.map((reader) => reader.cancel().catch(() => {})));
      await target.close();
    });
    const test = (title: string, run: () => Promise<void>, timeoutMs?: number) =>
      it(
        title,
        async () => {
          serial += 1;
          id = `commands-${serial}`;
          seq = 0;
          await run();
        },
        timeoutMs,
      );

    async function send(...events: AgUiEvent[]): Promise<void> {
      const own = events.map((event) => record(++seq, { agentId: id, sessionId: id, event }));
      await ingest(target, own, 1, id);
    }
    const startSession = () => send({ type: 'CUSTOM', name: 'marker', value: 0 });
    const custom = (eventName: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name: eventName, value });
    const path = (rest: string) => `/api/v1/sessions/${id}${rest}`;

    function call(method: string, at: string, body?: unknown): Promise<Response> {
      return target.send(at, {
        method,
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
      });
    }
    const post = (at: string, body?: unknown) => call('POST', at, body);
    async function say(text: string, clientId: string = crypto.randomUUID()): Promise<string> {
      const response = await post(path('/messages'), { text, clientId });
      expect(response.status).toBe(202);
      return (await response.json()).messageId;
    }
    const ack = (commandId: string, body: object, runner = '') =>
      post(`/api/v1/agents/${id}/commands/${commandId}/ack${runner}`, body);

    async function runner(query = '', headers: Record<string, string> = {}): Promise<FrameReader> {
      const response = await target.get(`/api/v1/agents/${id}/commands${query}`, headers);
      if (response.status !== 200 || response.body === null) throw new Error(await response.text());
      const reader = new FrameReader(response.body);
      readers.push(reader);
      return reader;
    }
    const framesOf = (reader: FrameReader) => reader.frames as unknown as CommandFrame[];
    const commandsOf = (reader: FrameReader): Command[] =>
      framesOf(reader).flatMap((frame) => (frame.event === 'command' ? [frame.data] : []));
    async function commands(reader: FrameReader, count: number): Promise<Command[]> {
      await reader.until(() => commandsOf(reader).length >= count);
      return commandsOf(reader);
    }
    const upToDate = (reader: FrameReader) =>
      reader.until(() => framesOf(reader).some(({ event }) => event === 'up-to-date'));

    async function items(): Promise<Item[]> {
      const page = (await (await target.get(path('/transcript'))).json()) as TranscriptPage;
      return page.turns.flatMap((turn) => turn.items);
    }
    const message = async (messageId: string) =>
      (await items()).find((item) => item.kind === 'message' && item.id === messageId) as MessageItem;
    const agent = async () => (await (await target.get(`/api/v1/agents/${id}`)).json()).agent;

    test('delivers a message to the connected runner, and shows its progress', async () => {
      await startSession();
      const reader = await runner('?runner=r1&startedAt=1');
      await upToDate(reader);
      const messageId = await say('Hello 🌍');
      const [command] = await commands(reader, 1);
      expect(command).toMatchObject({
        id: messageId,
        type: 'message',
        sessionId: id,
        body: { messageId, text: 'Hello 🌍', from: { kind: 'person', id: 'operator' } },
      });
      expect(command?.expiresAt).toBeGreaterThan(command?.createdAt ?? 0);
      expect(await message(messageId)).toMatchObject({
        role: 'user',
        text: 'Hello 🌍',
        delivery: 'queued',
        streaming: false,
      });
      const response = await ack(messageId, { state: 'delivered' });
      expect([response.status, await response.json()]).toEqual([200, { commandId: messageId, state: 'delivered' }]);
      expect(await message(messageId)).toMatchObject({ delivery: 'delivered' });
      await send({
        type: 'RUN_STARTED',
        threadId: id,
        runId: 'r',
        metadata: { interlude: { turn: 'user', userMessageIds: [messageId] } },
      });
      expect(await message(messageId)).toMatchObject({ delivery: 'seen' });
      // A message that the agent has read needs no delivery.
      const again = await runner('?runner=r2&startedAt=2');
      await upToDate(again);
      expect(commandsOf(again)).toEqual([]);
    });

    test('returns the same response for a repeated clientId, and sends the message once', async () => {
      await startSession();
      const first = await say('once', 'c1');
      expect(await say('once', 'c1')).toBe(first);
      const [a, b] = await Promise.all([say('two', 'c2'), say('two', 'c2')]);
      expect(a).toBe(b);
      const reader = await runner();
      await upToDate(reader);
      expect(commandsOf(reader).map((command) => command.id)).toEqual([first, a]);
      expect((await items()).filter((item) => item.kind === 'message')).toHaveLength(2);
    });

    test('refuses a clientId that another command used, and changes nothing', async () => {
      await send(
        { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'user' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Owed' },
        { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
        { type: 'TEXT_MESSAGE_START', messageId: 'm2', role: 'user' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm2', delta: 'Owed, too' },
        { type: 'TEXT_MESSAGE_END', messageId: 'm2' },
        { type: 'RUN_STARTED', threadId: id, runId: 'r', metadata: { interlude: { userMessageIds: [] } } },
        custom('task:started', { task_id: 't1', run_id: 'a' }),
        custom('task:started', { task_id: 't2' }),
        custom('request:opened', { request_id: 'p1', kind: 'permission', tool_name: 'Bash', input: { command: 'ls' } }),
        custom('request:opened', { request_id: 'p2', kind: 'permission', tool_name: 'Bash', input: { command: 'rm' } }),
        custom('request:opened', { request_id: 'q1', kind: 'question', title: 'Which?' }),
      );
      const { digest } = (await items()).find((item) => item.id === 'p1') as RequestItem;
      /** One command of each kind, with variants that differ in one field. */
      const commands: { where: string; body: object; others: [string, object][] }[] = [
        {
          where: '/messages',
          body: { text: 'once' },
          others: [
            ['/messages', { text: 'another' }],
            ['/messages', { text: 'once', replyTo: 'm1' }],
          ],
        },
        {
          where: '/messages',
          body: { text: 'To that', replyTo: 'm1' },
          others: [['/messages', { text: 'To that', replyTo: 'm2' }]],
        },
        {
          where: '/tasks/t1/stop',
          body: { runId: 'a' },
          others: [
            ['/tasks/t1/stop', {}],
            ['/tasks/t2/stop', {}],
          ],
        },
        {
          where: '/requests/p1',
          body: { behavior: 'allow', digest },
          others: [
            ['/requests/p1', { behavior: 'deny', digest }],
            ['/requests/p1', { behavior: 'allow' }],
            ['/requests/p1', { behavior: 'allow', digest, remember: true }],
            ['/requests/p1', { behavior: 'allow', digest, message: 'yes' }],
            ['/requests/p1', { behavior: 'allow', digest, updatedInput: { command: 'rm' } }],
            ['/requests/p1', { behavior: 'allow', digest, optionId: 'always' }],
            ['/requests/p2', { behavior: 'allow', digest }],
            ['/requests/p1', { answers: { 'Which?': 'A' } }],
          ],
        },
        {
          where: '/requests/q1',
          body: { answers: { 'Which?': 'A' } },
          others: [
            ['/requests/q1', { answers: { 'Which?': 'B' } }],
            ['/requests/q1', { answers: { 'Which?': ['A'] } }],
          ],
        },
        {
          where: '/obligations/m1/waive',
          body: { reason: 'done' },
          others: [
            ['/obligations/m1/waive', {}],
            ['/obligations/m2/waive', { reason: 'done' }],
          ],
        },
        // Last: an interrupt does not stay pending for long.
        { where: '/interrupt', body: { turnId: 'r' }, others: [['/interrupt', {}]] },
        { where: '/interrupt', body: {}, others: [['/interrupt', { turnId: 'r' }]] },
      ];
      const submit = async (at: string, body: object, clientId: string) => {
        const response = await post(path(at), { ...body, clientId });
        return [response.status, await response.json()];
      };
      for (const [index, { where, body, others }] of commands.entries()) {
        const answer = await submit(where, body, `c${index}`);
        expect([where, answer[0]]).toEqual([where, where.startsWith('/obl') ? 200 : 202]);
        const before = JSON.stringify(await items());
        const elsewhere = commands
          .filter((_, other) => other !== index)
          .map((other) => [other.where, other.body] as const);
        for (const [otherWhere, otherBody] of [...others, ...elsewhere]) {
          const [status, refusal] = await submit(otherWhere, otherBody, `c${index}`);
          expect([index, otherWhere, otherBody, status, refusal.error?.reason]).toEqual([
            index,
            otherWhere,
            otherBody,
            409,
            'client_id_reused',
          ]);
        }
        // The order of fields does not matter.
        const turned = Object.fromEntries(Object.entries(body).reverse());
        expect(await submit(where, turned, `c${index}`)).toEqual(answer);
        expect(JSON.stringify(await items())).toBe(before);
      }
      const reader = await runner();
      await upToDate(reader);
      expect(commandsOf(reader).map(({ type }) => type)).toEqual([
        'message',
        'message',
        'task.stop',
        'permission.decision',
        'question.answer',
        'interrupt',
      ]);
    });

    test('returns the same response for a repeated clientId that joined an earlier command', async () => {
      await send(
        { type: 'RUN_STARTED', threadId: id, runId: 'r' },
        custom('request:opened', { request_id: 'p1', kind: 'permission', tool_name: 'Bash' }),
      );
      const first = await (await post(path('/interrupt'), { clientId: 'c1' })).json();
      expect(await (await post(path('/interrupt'), { clientId: 'c2' })).json()).toEqual(first);
      const other = await post(path('/requests/p1'), { behavior: 'allow', clientId: 'c2' });
      expect([other.status, (await errorOf(other)).reason]).toEqual([409, 'client_id_reused']);
      await send({ type: 'RUN_FINISHED', threadId: id, runId: 'r' });
      expect(await (await post(path('/interrupt'), { clientId: 'c2' })).json()).toEqual(first);
    });

    test('accepts a reply to an item of the session only', async () => {
      const assistantMessage = (messageId: string): AgUiEvent => ({
        type: 'TEXT_MESSAGE_START',
        messageId,
        role: 'assistant',
      });
      await send(assistantMessage('m1'), { type: 'TOOL_CALL_START', toolCallId: 't1', toolCallName: 'Bash' });
      const earlier = await say('Hello');
      for (const replyTo of ['m1', earlier]) {
        const response = await post(path('/messages'), { text: 'To that', clientId: `to-${replyTo}`, replyTo });
        expect(response.status).toBe(202);
        expect(await message((await response.json()).messageId)).toMatchObject({ replyTo: [replyTo] });
      }
      const there = id;
      id = `${there}-other`;
      seq = 0;
      await startSession();
      for (const replyTo of ['m1', earlier, 'nowhere']) {
        const response = await post(path('/messages'), { text: 'To what?', clientId: `to-${replyTo}`, replyTo });
        expect([response.status, await errorOf(response)]).toMatchObject([404, { code: 'not_found' }]);
      }
      id = there;
      expect((await post(path('/messages'), { text: 'To what?', clientId: 'to-t1', replyTo: 't1' })).status).toBe(404);
    });

    test('keeps commands while the runner is away, and sends them in order when it connects', async () => {
      await startSession();
      expect(await agent()).toMatchObject({ connection: 'away', runnerId: null });
      const sent = [await say('one'), await say('two'), await say('three')];
      const reader = await runner('?runner=r1&startedAt=1');
      expect((await commands(reader, 3)).map((command) => command.id)).toEqual(sent);
      expect(await agent()).toMatchObject({ connection: 'connected', runnerId: 'r1' });
    });

    test('delivers commands to a turn without output', async () => {
      await send({ type: 'RUN_STARTED', threadId: id, runId: 'r' });
      const sent = [await say('one'), await say('two'), await say('three')];
      expect(await message(sent[0] as string)).toMatchObject({ delivery: 'queued' });
      const reader = await runner('?runner=r1&startedAt=1');
      await upToDate(reader);
      expect(commandsOf(reader).map((command) => command.id)).toEqual(sent);
    });

    test('resumes after the runner’s last command, and sends everything to a new runner', async () => {
      await startSession();
      await say('one');
      const reader = await runner('?runner=r1&startedAt=1');
      await commands(reader, 1);
      const position = framesOf(reader).find(({ event }) => event === 'command')?.id ?? '';
      const second = await say('two');
      await commands(reader, 2);
      const resumed = await runner('?runner=r1&startedAt=1', { 'last-event-id': position });
      expect((await commands(resumed, 1))[0]?.id).toBe(second);
      await reader.end();
      expect(framesOf(reader).at(-1)).toMatchObject({ event: 'bye', data: { reason: 'replaced' } });
      const fresh = await runner('?runner=r2&startedAt=2');
      expect(await commands(fresh, 2)).toHaveLength(2);
    });

    test('fences the older of two runners, and refuses its acknowledgement', async () => {
      await startSession();
      const messageId = await say('whose?');
      const older = await runner('?runner=old&startedAt=1000');
      await commands(older, 1);
      const newer = await runner('?runner=new&startedAt=2000');
      await older.end();
      expect(framesOf(older).at(-1)).toMatchObject({ event: 'fenced', data: { runnerId: 'new', startedAt: 2000 } });
      expect(await commands(newer, 1)).toHaveLength(1);
      const late = await ack(messageId, { state: 'delivered' }, '?runner=old&startedAt=1000');
      expect([late.status, (await errorOf(late)).code]).toEqual([403, 'stale_epoch']);
      const back = await runner('?runner=old&startedAt=1000');
      await back.end();
      expect(framesOf(back).map(({ event }) => event)).toEqual(['fenced']);
      expect((await ack(messageId, { state: 'delivered', runner: 'new', startedAt: 2000 })).status).toBe(200);
    });

    test('shows that a runner has disconnected', async () => {
      await startSession();
      const reader = await runner('?runner=r1&startedAt=1');
      await upToDate(reader);
      const fleet = await target.stream(
        `topic=fleet&after=${(await (await target.get('/api/v1/agents')).json()).position}`,
      );
      await fleet.frame('up-to-date');
      await reader.cancel();
      await fleet.until((frames) =>
        frames.some((frame) => frame.event === 'agent' && frame.data.id === id && frame.data.connection === 'away'),
      );
      expect(await agent()).toMatchObject({ connection: 'away', runnerId: 'r1' });
    });

    test('shows the reason of a failed message, and expects no reply to it', async () => {
      await startSession();
      const messageId = await say('too late');
      expect(await agent()).toMatchObject({ owedCount: 1 });
      await ack(messageId, { state: 'failed', reason: 'the agent refused it' });
      expect(await message(messageId)).toMatchObject({ delivery: 'failed', deliveryReason: 'the agent refused it' });
      expect(await agent()).toMatchObject({ owedCount: 0 });
      const again = await ack(messageId, { state: 'delivered' });
      expect(await again.json()).toEqual({ commandId: messageId, state: 'failed' });
    });

    test('sends one pending interrupt at a time, and shows its result in its turn', async () => {
      await send({ type: 'RUN_STARTED', threadId: id, runId: 'r' });
      const first = await (await post(path('/interrupt'))).json();
      expect(first).toMatchObject({ state: 'queued' });
      expect(await (await post(path('/interrupt'), {})).json()).toEqual(first);
      await send({ type: 'RUN_FINISHED', threadId: id, runId: 'r', outcome: { type: 'cancelled' } });
      await ack(first.commandId, { state: 'done' });
      const notices = (await items()).filter((item): item is NoticeItem => item.kind === 'notice');
      expect(notices).toMatchObject([
        {
          code: 'command',
          text: 'The interrupt reached the agent.',
          command: { id: first.commandId, type: 'interrupt', state: 'done' },
        },
      ]);
      const idle = await post(path('/interrupt'));
      expect([idle.status, await errorOf(idle)]).toMatchObject([409, { code: 'conflict', reason: 'no_open_turn' }]);
      await send({ type: 'RUN_STARTED', threadId: id, runId: 'r2' });
      const next = await (await post(path('/interrupt'))).json();
      expect(next.commandId).not.toBe(first.commandId);
    });

    test('interrupts the named turn only', async () => {
      const starts = (runId: string): AgUiEvent => ({ type: 'RUN_STARTED', threadId: id, runId });
      await send(starts('r1'));
      const reader = await runner();
      const first = await (await post(path('/interrupt'), { turnId: 'r1' })).json();
      // Without a turn id, the open turn is meant.
      expect(await (await post(path('/interrupt'))).json()).toEqual(first);
      await send({ type: 'RUN_FINISHED', threadId: id, runId: 'r1' });
      const idle = await post(path('/interrupt'), { turnId: 'r1' });
      expect([idle.status, await errorOf(idle)]).toMatchObject([409, { reason: 'turn_ended', openTurnId: null }]);
      await send(starts('r2'));
      const late = await post(path('/interrupt'), { turnId: 'r1' });
      expect([late.status, await errorOf(late)]).toMatchObject([409, { reason: 'turn_ended', openTurnId: 'r2' }]);
      // A pending interrupt of the previous turn does not stand in for this one.
      const second = await (await post(path('/interrupt'), { turnId: 'r2' })).json();
      expect(second.commandId).not.toBe(first.commandId);
      expect(await commands(reader, 2)).toMatchObject([
        { id: first.commandId, body: { turnId: 'r1' } },
        { id: second.commandId, body: { turnId: 'r2' } },
      ]);
      const [{ createdAt, expiresAt } = { createdAt: 0, expiresAt: 0 }] = commandsOf(reader);
      expect(expiresAt - createdAt).toBe(INTERRUPT_EXPIRY_MS);
      expect((await post(path('/interrupt'), { turnId: '' })).status).toBe(400);
    });

    test('stops a running task, and says why it can’t stop another', async () => {
      await send(
        { type: 'RUN_STARTED', threadId: id, runId: 'r' },
        custom('task:started', { task_id: 'runs', run_id: 'run-1', description: 'sleep 9' }),
        custom('task:started', { task_id: 'over' }),
        custom('task:completed', { task_id: 'over', status: 'completed' }),
      );
      const reader = await runner();
      const response = await post(path('/tasks/runs/stop'));
      expect(response.status).toBe(202);
      expect((await commands(reader, 1))[0]).toMatchObject({
        type: 'task.stop',
        body: { taskId: 'runs', runId: 'run-1' },
      });
      const refused = await post(path('/tasks/over/stop'));
      expect([refused.status, await errorOf(refused)]).toMatchObject([409, { code: 'conflict', status: 'completed' }]);
      expect((await post(path('/tasks/nowhere/stop'))).status).toBe(404);
      const { commandId } = await response.json();
      const notices = async () => (await items()).flatMap((item) => (item.kind === 'notice' ? [item.text] : []));
      expect(await notices()).toEqual(['A task was asked to stop: sleep 9.']);
      await ack(commandId, { state: 'failed', reason: 'no such process' });
      expect(await notices()).toEqual(['A task could not be stopped: sleep 9 (no such process).']);
    });

    test('ends a session once for repeated requests, and shows it', async () => {
      await startSession();
      const reader = await runner();
      const response = await post(path('/end'), { clientId: 'e' });
      expect(response.status).toBe(202);
      const answer = await response.json();
      expect(answer).toEqual({ commandId: expect.any(String), state: 'queued' });
      const [command] = await commands(reader, 1);
      expect(command).toMatchObject({ id: answer.commandId, type: 'session.end', sessionId: id, body: {} });
      // Meant for the connected runner.
      expect((command?.expiresAt ?? 0) - (command?.createdAt ?? 0)).toBe(INTERRUPT_EXPIRY_MS);
      for (const again of [{ clientId: 'e' }, { clientId: 'f' }, undefined]) {
        expect((await (await post(path('/end'), again)).json()).commandId).toBe(answer.commandId);
      }
      expect((await post(path('/end'), { why: 1 })).status).toBe(400);
      expect((await post(`/api/v1/sessions/nowhere-${id}/end`)).status).toBe(404);
      const notices = async () => (await items()).flatMap((item) => (item.kind === 'notice' ? [item.text] : []));
      expect(await notices()).toEqual(['The session was asked to end.']);
      await ack(answer.commandId, { state: 'done' });
      expect(await notices()).toEqual(['The runner began to end the session.']);
      await send(custom('session:ended', { reason: 'ended from the dashboard' }));
      const late = await post(path('/end'));
      expect([late.status, (await errorOf(late)).reason]).toEqual([409, 'session_ended']);
      expect((await (await post(path('/end'), { clientId: 'e' })).json()).commandId).toBe(answer.commandId);
    });

    test('wakes an agent for an ended task, and says why it can’t for a running one', async () => {
      await send(
        { type: 'RUN_STARTED', threadId: id, runId: 'r' },
        custom('task:started', { task_id: 'runs' }),
        custom('task:started', { task_id: 'over', run_id: 'run-1', description: 'npm test' }),
        custom('task:completed', { task_id: 'over', run_id: 'run-1', status: 'completed' }),
      );
      const reader = await runner();
      const response = await post(path('/tasks/over/wake'), { clientId: 'w' });
      expect(response.status).toBe(202);
      const answer = await response.json();
      expect(answer).toMatchObject({ state: 'queued' });
      expect((await commands(reader, 1))[0]).toMatchObject({
        id: answer.commandId,
        type: 'task.wake',
        body: { taskId: 'over', runId: 'run-1', description: 'npm test' },
      });
      expect(await (await post(path('/tasks/over/wake'), { clientId: 'w' })).json()).toMatchObject(answer);
      // A wake for the same run is pending already.
      expect(await (await post(path('/tasks/over/wake'), { runId: 'run-1' })).json()).toMatchObject(answer);
      const refused = await post(path('/tasks/runs/wake'));
      expect([refused.status, await errorOf(refused)]).toMatchObject([
        409,
        { code: 'conflict', reason: 'task_running' },
      ]);
      expect((await post(path('/tasks/over/wake'), { runId: 'run-2' })).status).toBe(404);
      expect((await post(path('/tasks/over/wake'), { why: 1 })).status).toBe(400);
      await ack(answer.commandId, { state: 'done' });
      const notices = (await items()).flatMap((item) => (item.kind === 'notice' ? [item.text] : []));
      expect(notices).toEqual(['The agent was woken for a task: npm test.']);
      await send(custom('session:ended', { reason: 'exit', exitCode: 0 }));
      const late = await post(path('/tasks/over/wake'));
      expect([late.status, (await errorOf(late)).reason]).toEqual([409, 'session_ended']);
    });

    test('stores a session’s wake rule, and sends it to the runner', async () => {
      await startSession();
      const ruleOf = async () => (await (await target.get(path(''))).json()).session.wakeRule;
      expect(await ruleOf()).toBeNull();
      const reader = await runner();
      const put = (body: object) => call('PUT', path('/wake-rule'), body);
      const response = await put({ when: 'command-ended', clientId: 'w' });
      expect(response.status).toBe(202);
      const answer = await response.json();
      expect(answer).toEqual({ commandId: expect.any(String), state: 'queued', when: 'command-ended' });
      expect((await commands(reader, 1))[0]).toMatchObject({
        id: answer.commandId,
        type: 'wake-rule.set',
        body: { when: 'command-ended' },
      });
      expect(await ruleOf()).toBe('command-ended');
      expect(await (await put({ when: 'command-ended', clientId: 'w' })).json()).toMatchObject({
        commandId: answer.commandId,
      });
      const other = await put({ when: 'never', clientId: 'w' });
      expect([other.status, (await errorOf(other)).reason]).toEqual([409, 'client_id_reused']);
      expect(await ruleOf()).toBe('command-ended');
      await ack(answer.commandId, { state: 'failed', reason: 'no such thing' });
      expect(await ruleOf()).toBeNull();
      expect((await put({ when: 'always' })).status).toBe(400);
      expect((await call('PUT', `/api/v1/sessions/nowhere-${id}/wake-rule`, { when: 'never' })).status).toBe(404);
    });

    test('stops a task whose description was truncated within a surrogate pair', async () => {
      await send(
        { type: 'RUN_STARTED', threadId: id, runId: 'r' },
        custom('task:started', { task_id: 'cut', description: 'deploy the thing \ud83d' }),
      );
      const reader = await runner();
      const response = await post(path('/tasks/cut/stop'));
      expect(response.status).toBe(202);
      expect((await commands(reader, 1))[0]).toMatchObject({ body: { description: 'deploy the thing \ufffd' } });
      const { commandId } = await response.json();
      expect(
        (await ack(commandId, { state: 'failed', reason: 'half \ude00', result: { 'a\ud83d': '\ud83d' } })).status,
      ).toBe(200);
      expect((await items()).at(-1)).toMatchObject({
        text: 'A task could not be stopped: deploy the thing \ufffd (half \ufffd).',
      });
    });

    test('decides a permission once, and shows the decision', async () => {
      await send(
        { type: 'RUN_STARTED', threadId: id, runId: 'r' },
        custom('request:opened', { request_id: 'q1', kind: 'permission', tool_name: 'Bash' }),
      );
      const request = async () => (await items()).find((item) => item.kind === 'request') as RequestItem;
      const reader = await runner();
      const response = await post(path('/requests/q1'), { behavior: 'deny', message: 'not now' });
      expect(response.status).toBe(202);
      const { commandId } = await response.json();
      expect((await commands(reader, 1))[0]).toMatchObject({
        type: 'permission.decision',
        body: { requestId: 'q1', behavior: 'deny', message: 'not now' },
      });
      expect(await request()).toMatchObject({
        outcome: null,
        answer: { commandId, behavior: 'deny', state: 'queued' },
      });
      const twice = await post(path('/requests/q1'), { behavior: 'allow' });
      expect([twice.status, (await errorOf(twice)).reason]).toEqual([409, 'request_answered']);
      await ack(commandId, { state: 'done' });
      expect(await request()).toMatchObject({ answer: { commandId, behavior: 'deny', state: 'done' } });
      await send(custom('request:resolved', { request_id: 'q1', outcome: 'denied' }));
      const late = await post(path('/requests/q1'), { behavior: 'allow' });
      expect([late.status, (await errorOf(late)).reason]).toEqual([409, 'request_resolved']);
      expect((await post(path('/requests/q9'), { behavior: 'allow' })).status).toBe(404);
      expect((await items()).filter((item) => item.kind === 'notice')).toEqual([]);
    });

    test('accepts only answers for a question', async () => {
      await send(custom('request:opened', { request_id: 'q1', kind: 'question', title: 'Which?' }));
      expect((await post(path('/requests/q1'), { behavior: 'allow' })).status).toBe(400);
      const reader = await runner();
      expect((await post(path('/requests/q1'), { answers: { 'Which?': ['A', 'B'] } })).status).toBe(202);
      expect((await commands(reader, 1))[0]).toMatchObject({
        type: 'question.answer',
        body: { requestId: 'q1', answers: { 'Which?': ['A', 'B'] } },
      });
    });

    test('refuses a malformed command, and lists the valid values', async () => {
      await startSession();
      const bad: unknown[] = [
        '',
        'not json',
        [],
        {},
        { text: '', clientId: 'c' },
        { text: ' \n\t', clientId: 'c' },
        { text: 'x'.repeat(MAX_MESSAGE_BYTES + 1), clientId: 'c' },
        { text: 'é'.repeat(MAX_MESSAGE_BYTES / 2 + 1), clientId: 'c' },
        { text: 5, clientId: 'c' },
        { text: 'hi' },
        { text: 'hi', clientId: '' },
        { text: 'hi', clientId: 'a\0b' },
        { text: 'hi', clientId: 'c', replyTo: 7 },
        { text: 'hi', clientId: 'c', urgent: true },
      ];
      for (const body of bad) {
        const response = await post(path('/messages'), body);
        expect([response.status, body]).toEqual([400, body]);
      }
      expect((await errorOf(await post(path('/messages'), { text: 'hi' }))).message).toContain(
        'text, clientId, replyTo',
      );
      expect((await post(path('/interrupt'), { force: true })).status).toBe(400);
      expect((await post(path('/requests/q'), { behavior: 'maybe' })).status).toBe(400);
      expect((await ack('c', { state: 'queued' })).status).toBe(400);
      expect((await target.get(`/api/v1/agents/${id}/commands?after=x`)).status).toBe(400);
      expect((await target.get(`/api/v1/agents/${id}/commands?runner=r`)).status).toBe(400);
      expect((await items()).filter((item) => item.kind === 'message')).toEqual([]);
    });

    test('accepts a message of maximum size, and text that no column could hold', async () => {
      await startSession();
      const reader = await runner();
      const texts = ['x'.repeat(MAX_MESSAGE_BYTES), `half \ud83c a pair, and a \0 NUL`];
      for (const text of texts) await say(text);
      const sent = await commands(reader, 2);
      expect(
        sent.map((command) =>
          command.type === 'message' ? command.body.text === texts[sent.indexOf(command)]?.toWellFormed() : null,
        ),
      ).toEqual([true, true]);
    });

    test('refuses text that no database stores', async () => {
      await startSession();
      await send(custom('request:opened', { request_id: 'q1', kind: 'permission', tool_name: 'Bash' }));
      const large = { behavior: 'allow', updatedInput: { text: 'x'.repeat(2 * MAX_RECORD_BYTES) } };
      const refused = await post(`/api/v1/sessions/${id}/requests/q1`, large);
      expect([refused.status, (await errorOf(refused)).maxBytes]).toEqual([413, MAX_RECORD_BYTES]);
      const result = { state: 'done', result: 'x'.repeat(2 * MAX_RECORD_BYTES) };
      const command = (await (await post(`/api/v1/sessions/${id}/requests/q1`, { behavior: 'allow' })).json())
        .commandId;
      expect((await ack(command, result)).status).toBe(200);
    });

    test('answers 404 for unknown sessions, tasks and requests', async () => {
      await startSession();
      for (const where of ['/messages', '/interrupt', '/tasks/t/stop', '/requests/q']) {
        const body =
          where === '/messages' ? { text: 'hi', clientId: 'c' } : where.startsWith('/req') ? { behavior: 'deny' } : {};
        const response = await post(`/api/v1/sessions/nowhere-${id}${where}`, body);
        expect([where, response.status]).toEqual([where, 404]);
      }
      expect((await ack('nothing', { state: 'done' })).status).toBe(404);
    });

    test('refuses commands for an ended session until it runs again', async () => {
      await send(custom('session:ended', { reason: 'exit', exitCode: 0 }));
      const refused = await post(path('/messages'), { text: 'hi', clientId: 'c' });
      expect([refused.status, await errorOf(refused)]).toMatchObject([
        409,
        { code: 'conflict', reason: 'session_ended' },
      ]);
      await send(custom('session:started', {}));
      await say('hi');
    });

    test('accepts messages for an ended session when a later runner may have resumed it', async () => {
      await send(custom('session:ended', { reason: 'exit', exitCode: 0 }));
      const reader = await runner('?runner=r1&startedAt=1');
      await upToDate(reader);
      const messageId = await say('Still there?');
      expect((await commands(reader, 1))[0]?.id).toBe(messageId);
    });

    test('refuses acknowledgements by another agent’s runner', async () => {
      await startSession();
      const messageId = await say('mine');
      const other = await post(`/api/v1/agents/other-${id}/commands/${messageId}/ack`, { state: 'failed' });
      expect(other.status).toBe(404);
      expect(await message(messageId)).toMatchObject({ delivery: 'queued' });
    });

    test('delivers messages in order, each once, while more are sent', async () => {
      await startSession();
      const reader = await runner();
      await upToDate(reader);
      const typed: string[] = [];
      for (let count = 1; count <= 15; count += 1) {
        typed.push(await say(`message ${count}`));
        expect((await commands(reader, count)).map((command) => command.id)).toEqual(typed);
      }
    });
  });
}
