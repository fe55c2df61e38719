import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Command } from '@interlude/protocol/commands';
import { MAX_OPEN_REQUESTS, MAX_PENDING_REQUESTS, MAX_RECORD_VALUES } from '@interlude/protocol/limits';
import type { Item, NoticeItem, RequestItem, SessionDetail, TranscriptPage } from '@interlude/protocol/read-models';
import { requestDigest } from '@interlude/protocol/request-digest';
import type { CommandFrame } from '@interlude/protocol/sse';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FrameReader } from '../support/frames';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** An answer reaches exactly the request that the person saw, or none. */
export function describeRequestsContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`answers to requests, ${name}`, () => {
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
    beforeEach(() => {
      serial += 1;
      id = `requests-${serial}`;
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
    const opens = (requestId: string, command: string, more: object = {}) =>
      custom('request:opened', {
        request_id: requestId,
        kind: 'permission',
        tool_name: 'Bash',
        input: { command, timeout: 5 },
        ...more,
      });
    const openQuestion = (requestId: string, question: string) =>
      opens(requestId, '', { kind: 'question', tool_name: 'AskUserQuestion', input: { questions: [{ question }] } });
    const resolves = (requestId: string, outcome: string) =>
      custom('request:resolved', { request_id: requestId, outcome });
    const starts: AgUiEvent = { type: 'RUN_STARTED', threadId: 's', runId: 'r' };

    const answer = (requestId: string, body: object) =>
      target.send(`/api/v1/sessions/${id}/requests/${requestId}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const refusal = async (response: Response) => [response.status, (await errorOf(response)).reason];

    async function items(): Promise<Item[]> {
      const page = (await (await target.get(`/api/v1/sessions/${id}/transcript`)).json()) as TranscriptPage;
      return page.turns.flatMap((turn) => turn.items);
    }
    const requests = async () => (await items()).filter((item): item is RequestItem => item.kind === 'request');
    async function request(): Promise<RequestItem & { digest: string }> {
      return (await requests()).at(-1) as RequestItem & { digest: string };
    }
    const notices = async () =>
      (await items()).filter((item): item is NoticeItem => item.kind === 'notice').map(({ text }) => text);

    /** All commands that a newly connected runner receives. */
    async function sent(): Promise<Command[]> {
      const response = await target.get(`/api/v1/agents/${id}/commands`);
      const reader = new FrameReader(response.body as ReadableStream<Uint8Array>);
      readers.push(reader);
      const frames = () => reader.frames as unknown as CommandFrame[];
      await reader.until(() => frames().some(({ event }) => event === 'up-to-date'));
      return frames().flatMap((frame) => (frame.event === 'command' ? [frame.data] : []));
    }

    test('answers name a digest of the request, live and reloaded alike, ignoring the producer’s own', async () => {
      const stream = await target.stream(`topic=session:${id}&after=0`);
      await send(starts, opens('q', 'ls', { digest: 'forged', opened_position: '1' }));
      const item = await request();
      expect(item.openedPosition).toBe(item.position);
      const input = { timeout: 5, command: 'ls' };
      const position = item.position;
      expect(item.digest).toBe(requestDigest({ sessionId: id, requestId: 'q', tool: 'Bash', input, position }));
      await stream.until((frames) => frames.some((frame) => frame.id === position));
      const live = stream.frames.find((frame) => frame.id === position);
      expect(live?.data).toMatchObject({
        event: { value: { request_id: 'q', digest: item.digest, opened_position: position } },
      });
    });

    describe('to requests with options', () => {
      const options = [
        { id: 'once', label: 'Yes', kind: 'allow' },
        { id: 'always', label: 'Always', kind: 'allow', isLasting: true },
        { id: 'no', label: 'No', kind: 'deny' },
      ];

      test('answers choose an option by its id, and none that the request lacks', async () => {
        await send(starts, opens('q', 'ls', { options }), opens('plain', 'ls'));
        const [{ digest }] = (await requests()) as [RequestItem & { digest: string }];
        const refused = async (requestId: string, body: object) => {
          const response = await answer(requestId, body);
          return [response.status, (await errorOf(response)).code];
        };
        expect(await refused('q', { behavior: 'allow', optionId: 'never' })).toEqual([400, 'invalid_argument']);
        expect(await refused('q', { behavior: 'deny', optionId: 'once' })).toEqual([400, 'invalid_argument']);
        expect(await refused('plain', { behavior: 'allow', optionId: 'once' })).toEqual([400, 'invalid_argument']);
        expect((await answer('q', { behavior: 'allow', optionId: 'always', digest, clientId: 'c' })).status).toBe(202);
        expect((await answer('q', { behavior: 'allow', optionId: 'always', digest, clientId: 'c' })).status).toBe(202);
        expect(await sent()).toMatchObject([
          { body: { requestId: 'q', behavior: 'allow', optionId: 'always', digest } },
        ]);
        expect((await requests())[0]).toMatchObject({ options, answer: { optionId: 'always', state: 'queued' } });
      });

      test('answers are refused when an option has changed', async () => {
        await send(starts, opens('q', 'ls', { options }));
        const { digest, openedPosition } = await request();
        await send(opens('q', 'ls', { options }));
        expect(await request()).toMatchObject({ digest, openedPosition });
        await send(opens('q', 'ls', { options: [{ ...options[0], label: 'Yes, to all' }] }));
        const now = await request();
        expect(now.digest).not.toBe(digest);
        const late = await answer('q', { behavior: 'allow', optionId: 'once', digest });
        expect(await refusal(late)).toEqual([409, 'request_changed']);
      });

      test('may omit the option, and ignore a malformed list', async () => {
        await send(starts, opens('q', 'ls', { options }), opens('odd', 'ls', { options: [options[0], { id: 'x' }] }));
        expect((await answer('q', { behavior: 'deny', message: 'no' })).status).toBe(202);
        const [, odd] = await requests();
        expect(odd).not.toHaveProperty('options');
      });
    });

    test('answers may carry an input as large as the request’s, with every other field', async () => {
      // JSON size on the wire: no text here needs escapes.
      const valuesIn = (value: unknown) => JSON.stringify(value).match(/[,[{]/g)?.length ?? 0;
      const requestOf = (input: object) => custom('request:opened', { request_id: 'q', input });
      const around = valuesIn(record(1, { agentId: id, sessionId: id, event: requestOf({}) }));
      const wide = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`${index}`, index]));
      await send(starts, requestOf(wide(MAX_RECORD_VALUES - around + 1)));
      const { input, digest } = await request();
      expect(valuesIn(input) + around - 1).toBe(MAX_RECORD_VALUES);
      const body = { behavior: 'allow', message: 'yes', updatedInput: input, remember: true, digest, clientId: 'c' };
      expect((await answer('q', body)).status).toBe(202);
      expect(await sent()).toMatchObject([{ body: { updatedInput: input } }]);
    });

    test('reach every open request, also beyond those a session lists', async () => {
      const ids = Array.from({ length: MAX_OPEN_REQUESTS + 3 }, (_, index) => `q${index}`);
      await send(starts, ...ids.map((requestId) => opens(requestId, `echo ${requestId}`)));
      const [late, later, latest] = (await requests()).slice(-3) as (RequestItem & { digest: string })[];
      if (late === undefined || later === undefined || latest === undefined) throw new Error('there are three more');
      expect(await refusal(await answer(late.id, { behavior: 'allow', digest: later.digest }))).toEqual([
        409,
        'request_changed',
      ]);
      expect((await answer(late.id, { behavior: 'allow', digest: late.digest })).status).toBe(202);
      expect(await refusal(await answer(late.id, { behavior: 'deny' }))).toEqual([409, 'request_answered']);
      expect(await sent()).toMatchObject([
        { body: { requestId: late.id, digest: late.digest, openedPosition: late.position } },
      ]);
      expect((await answer('never', { behavior: 'allow' })).status).toBe(404);
      await send(resolves(later.id, 'allowed'));
      expect(await refusal(await answer(later.id, { behavior: 'allow' }))).toEqual([409, 'request_resolved']);
      // The counted requests are resolved, so nothing waits. The others can still be answered.
      await send(...ids.slice(0, MAX_OPEN_REQUESTS).map((requestId) => resolves(requestId, 'allowed')));
      const session = await (await target.get(`/api/v1/sessions/${id}`)).json();
      expect(session).toMatchObject({ session: { state: 'working', pendingRequestCount: 0 } });
      expect((await answer(latest.id, { behavior: 'allow', digest: latest.digest })).status).toBe(202);
    });

    test.each([
      ['a failed turn', [{ type: 'RUN_ERROR', message: 'it broke' }]],
      ['a turn that another one cut off', [{ type: 'RUN_STARTED', threadId: 's', runId: 'r2' }]],
      [
        'a process that ended',
        [
          { type: 'CUSTOM', name: 'session:ended', value: {} },
          { type: 'RUN_STARTED', runId: 'r3' },
        ],
      ],
    ] as [string, AgUiEvent[]][])('reach no request of %s, however many it left', async (_, end) => {
      const many = (prefix: string) =>
        Array.from({ length: MAX_OPEN_REQUESTS + 2 }, (_, index) => opens(`${prefix}${index}`, 'ls'));
      await send(
        { type: 'RUN_STARTED', runId: 'r0' },
        { type: 'RUN_ERROR', message: 'before' },
        starts,
        ...many('old'),
      );
      await send(...end, ...many('new'));
      const last = MAX_OPEN_REQUESTS + 1;
      expect(await refusal(await answer(`old${last}`, { behavior: 'allow' }))).toEqual([409, 'request_resolved']);
      expect((await answer(`new${last}`, { behavior: 'allow' })).status).toBe(202);
    });

    test('carry the request’s digest and position to the runner, whether or not the sender named them', async () => {
      await send(starts, opens('p', 'ls'), openQuestion('q', 'Which?'));
      const [permission, question] = await requests();
      expect((await answer('p', { behavior: 'allow' })).status).toBe(202);
      expect((await answer('q', { answers: { 'Which?': 'A' }, digest: question?.digest })).status).toBe(202);
      expect(await sent()).toMatchObject([
        { body: { requestId: 'p', digest: permission?.digest, openedPosition: permission?.position } },
        { body: { requestId: 'q', digest: question?.digest, openedPosition: question?.position } },
      ]);
    });

    test('carry every field, including `__proto__`, and differ when it differs', async () => {
      const own = (text: string): object => JSON.parse(text);
      await send(starts, opens('p', 'ls'), openQuestion('q', '__proto__'));
      const decision = { behavior: 'allow', updatedInput: own('{"a":1,"__proto__":{"x":1}}'), clientId: 'c' };
      expect((await answer('p', decision)).status).toBe(202);
      expect((await answer('p', decision)).status).toBe(202);
      for (const text of ['{"a":1}', '{"a":1,"__proto__":{"x":2}}']) {
        const other = { ...decision, updatedInput: own(text) };
        expect(await refusal(await answer('p', other))).toEqual([409, 'client_id_reused']);
      }
      const reply = { answers: own('{"__proto__":["A","B"]}'), clientId: 'd' };
      expect((await answer('q', reply)).status).toBe(202);
      const other = { ...reply, answers: own('{"__proto__":["A"]}') };
      expect(await refusal(await answer('q', other))).toEqual([409, 'client_id_reused']);
      const bodies = (await sent()).map(({ body }) => JSON.stringify(body));
      expect(bodies[0]).toContain('"updatedInput":{"a":1,"__proto__":{"x":1}}');
      expect(bodies[1]).toContain('"answers":{"__proto__":["A","B"]}');
    });

    test.each([
      ['answers that are no object', { answers: ['A'] }, 'answers: '],
      ['no answer', { answers: {} }, 'answers: name at least one question'],
      ['an answer that is no text', { answers: { 'Which?': 1 } }, 'answers.Which?: '],
      ['a choice that is no text', { answers: { 'Which?': ['A', 1] } }, 'answers.Which?'],
      ['too many choices', { answers: { 'Which?': Array(65).fill('A') } }, 'answers.Which?: '],
      ['an input that is no object', { behavior: 'allow', updatedInput: ['ls'] }, 'updatedInput: '],
    ])('are refused with the invalid field: %s', async (_, body, where) => {
      const { code, message } = await errorOf(await answer('q', body));
      expect(code).toBe('invalid_argument');
      expect(message.startsWith(where)).toBe(true);
    });

    test('answers are refused when the same id asks something else, with the current digest', async () => {
      await send(starts, opens('p', 'ls'), openQuestion('q', 'Which?'));
      const [permission, question] = await requests();
      await send(opens('p', 'rm -rf .'), openQuestion('q', 'Really?'));
      const now = (await requests()).filter(({ outcome }) => outcome === null);
      expect(now.map(({ input }) => input)).toMatchObject([
        { command: 'rm -rf .' },
        { questions: [{ question: 'Really?' }] },
      ]);
      const late = await answer('p', { behavior: 'allow', digest: permission?.digest });
      expect([late.status, await errorOf(late)]).toMatchObject([
        409,
        { code: 'conflict', reason: 'request_changed', digest: now[0]?.digest },
      ]);
      for (const digest of [question?.digest, '', null]) {
        expect(await refusal(await answer('q', { answers: { 'Which?': 'A' }, digest }))).toEqual([
          409,
          'request_changed',
        ]);
      }
      expect(await sent()).toEqual([]);
      expect((await answer('p', { behavior: 'deny', digest: now[0]?.digest })).status).toBe(202);
      expect((await answer('q', { answers: { 'Really?': 'No' }, digest: now[1]?.digest })).status).toBe(202);
    });

    test('remain valid when a restarted runner repeats the request unchanged', async () => {
      await send(starts, opens('p', 'ls'));
      const { digest, position } = await request();
      await send(opens('p', 'ls', { title: 'Again', input: { timeout: 5, command: 'ls' }, digest: 'forged' }));
      expect(await requests()).toMatchObject([{ digest, openedPosition: position, outcome: null }]);
      const { commandId } = await (await answer('p', { behavior: 'allow', digest })).json();
      await send(opens('p', 'ls'));
      expect(await sent()).toMatchObject([{ id: commandId, body: { digest, openedPosition: position } }]);
      expect((await request()).answer).toMatchObject({ commandId, state: 'queued' });
    });

    test('remain valid when a request beyond the inbox’s limit is repeated, and count once', async () => {
      const ids = Array.from({ length: MAX_PENDING_REQUESTS + 1 }, (_, index) => `q${index}`);
      const last = ids.at(-1) as string;
      await send(starts, ...ids.map((requestId) => opens(requestId, 'ls')));
      const { digest } = await request();
      const { commandId } = await (await answer(last, { behavior: 'allow', digest })).json();
      await send(opens(last, 'ls'), opens(last, 'ls'));
      await send(opens(last, 'ls'));
      expect(await sent()).toMatchObject([{ id: commandId, body: { digest } }]);
      const count = async () => (await (await target.get(`/api/v1/sessions/${id}`)).json()).session.pendingRequestCount;
      expect(await count()).toBe(ids.length);
      await send(...[0, 0, 0, 1].map((at) => resolves(`q${at}`, 'denied')));
      expect(await count()).toBe(ids.length - 2);
      await send(...ids.map((requestId) => resolves(requestId, 'allowed')));
      expect(await count()).toBe(0);
    });

    test.each([
      ['a question without input', { kind: 'question', tool_name: undefined, input: undefined }],
      ['a question with an empty input', { kind: 'question', input: {} }],
      ['a permission without input', { input: undefined }],
    ])('are bound to the title where that is the question: %s', async (_, fields) => {
      await send(starts, opens('p', '', { title: 'Deploy to staging?', ...fields }));
      const { digest } = await request();
      const body = 'kind' in fields ? { answers: { it: 'Yes' }, digest } : { behavior: 'allow', digest };
      expect((await answer('p', body)).status).toBe(202);
      await send(opens('p', '', { title: 'Deploy to staging?', ...fields }));
      expect((await request()).digest).toBe(digest);
      await send(opens('p', '', { title: 'Deploy to production?', ...fields }));
      expect(await sent()).toEqual([]);
      expect(await request()).toMatchObject({ title: 'Deploy to production?', outcome: null, answer: null });
      expect(await refusal(await answer('p', body))).toEqual([409, 'request_changed']);
    });

    test('are bound to the whole text of a long question', async () => {
      const questionEnding = (end: string) =>
        opens('p', '', { kind: 'question', input: {}, title: `${'x'.repeat(4_100)}${end}` });
      await send(starts, questionEnding('staging?'));
      const { digest } = await request();
      const body = { answers: { it: 'Yes' }, digest };
      expect((await answer('p', body)).status).toBe(202);
      await send(questionEnding('production?'));
      expect(await sent()).toEqual([]);
      expect((await request()).title).toMatch(/production\?$/);
      expect(await refusal(await answer('p', body))).toEqual([409, 'request_changed']);
    });

    test('reach an open request beyond those a session lists, and no resolved one', async () => {
      const ids = Array.from({ length: MAX_OPEN_REQUESTS + 2 }, (_, index) => `p${index}`);
      await send(starts, ...ids.map((requestId) => opens(requestId, requestId)));
      const [last, over] = ids.slice(-2) as [string, string];
      await send(resolves(over, 'denied'));
      const { digest, position } = (await requests()).find((item) => item.id === last) as RequestItem;
      expect(await refusal(await answer(last, { behavior: 'allow', digest: 'another' }))).toEqual([
        409,
        'request_changed',
      ]);
      expect((await answer(last, { behavior: 'allow', digest })).status).toBe(202);
      expect(await sent()).toMatchObject([{ body: { requestId: last, digest, openedPosition: position } }]);
      expect(await refusal(await answer(over, { behavior: 'allow' }))).toEqual([409, 'request_resolved']);
    });

    test('are accepted until the request expires by the runner’s clock, and refused afterwards', async () => {
      const waits = (ms: number) => ({ expires_at: Date.now() + ms });
      const ids = Array.from({ length: MAX_PENDING_REQUESTS }, (_, index) => `p${index}`);
      await send(starts, opens('long', 'ls', waits(600_000)), ...ids.map((requestId) => opens(requestId, requestId)));
      expect((await answer('long', { behavior: 'allow' })).status).toBe(202);
      // Asked an hour ago by its runner's clock, with one millisecond to answer.
      const occurredAt = Date.now() - 3_600_000;
      for (const requestId of ['p0', 'beyond what is remembered']) {
        await send(resolves('p0', 'denied'));
        const event = opens(requestId, 'ls', { expires_at: occurredAt + 1 });
        await ingest(target, [record(++seq, { agentId: id, sessionId: id, event, occurredAt })], 1, id);
        await expect
          .poll(async () => refusal(await answer(encodeURIComponent(requestId), { behavior: 'allow' })))
          .toEqual([409, 'request_expired']);
      }
      expect(await sent()).toMatchObject([{ body: { requestId: 'long' } }]);
    });

    test('answers are cancelled and shown as such when the agent asks something else under the same id', async () => {
      await send(starts, opens('p', 'ls'), openQuestion('q', 'Which?'), opens('other', 'id'));
      const before = await requests();
      const allowed = await (await answer('p', { behavior: 'allow' })).json();
      await answer('q', { answers: { 'Which?': 'A' } });
      const kept = await (await answer('other', { behavior: 'allow' })).json();
      await send(opens('p', 'rm -rf .'), openQuestion('q', 'Really?'));
      expect((await sent()).map((command) => command.id)).toEqual([kept.commandId]);
      const because = 'the agent reopened the request with different content: review it again';
      expect(await notices()).toEqual([
        `The decision did not reach the agent (${because}).`,
        `The answer did not reach the agent (${because}).`,
      ]);
      const after = await requests();
      // The first request is unchanged and closed.
      expect(after.filter(({ outcome }) => outcome === 'cancelled').map(({ digest }) => digest)).toEqual([
        before[0]?.digest,
        before[1]?.digest,
      ]);
      expect(after.find((item) => item.id === 'p')).toMatchObject({ outcome: null, answer: null });
      const late = await target.send(`/api/v1/agents/${id}/commands/${allowed.commandId}/ack`, {
        method: 'POST',
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ state: 'done' }),
      });
      expect(await late.json()).toMatchObject({ state: 'failed' });
    });

    test('are cancelled when the agent asks the same again after it continued', async () => {
      await send(starts, opens('p', 'ls'));
      const { digest } = await request();
      await answer('p', { behavior: 'allow', digest });
      await send(resolves('p', 'cancelled'), opens('p', 'ls'));
      expect(await sent()).toEqual([]);
      expect((await request()).digest).not.toBe(digest);
      expect(await refusal(await answer('p', { behavior: 'allow', digest }))).toEqual([409, 'request_changed']);
      expect((await answer('p', { behavior: 'allow', digest: (await request()).digest })).status).toBe(202);
    });

    test('count when a runner received them before the agent asked again, and acted on them', async () => {
      await send(starts, opens('p', 'ls'));
      const { commandId } = await (await answer('p', { behavior: 'allow' })).json();
      expect(await sent()).toHaveLength(1);
      await send(resolves('p', 'allowed'), opens('p', 'rm'));
      const ack = await target.send(`/api/v1/agents/${id}/commands/${commandId}/ack`, {
        method: 'POST',
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ state: 'done' }),
      });
      expect(await ack.json()).toEqual({ commandId, state: 'done' });
      expect(await notices()).toEqual(['The decision reached the agent.']);
      expect(await request()).toMatchObject({ outcome: null, answer: null });
    });

    describe('to requests derived from the agent’s output', () => {
      const finishes = (more: object = {}): AgUiEvent => ({ type: 'RUN_FINISHED', threadId: 's', runId: 'r', ...more });
      const interrupted = (...interrupts: object[]) => finishes({ outcome: { type: 'interrupt', interrupts } });
      const writes = (messageId: string): AgUiEvent[] => [
        { type: 'TEXT_MESSAGE_START', messageId, role: 'user' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: 'Blue' },
        { type: 'TEXT_MESSAGE_END', messageId },
      ];
      const questions = { questions: [{ question: 'Which colour?', options: [{ label: 'red' }] }] };
      const call: AgUiEvent[] = [
        { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'AskUserQuestion' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: JSON.stringify(questions) },
        { type: 'TOOL_CALL_END', toolCallId: 'c' },
      ];
      const own = (requestId = 'c') =>
        opens(requestId, '', {
          kind: 'question',
          tool_name: 'AskUserQuestion',
          tool_use_id: 'c',
          title: 'Which colour?',
          input: questions,
        });
      const summary = async () => {
        const { session } = (await (await target.get(`/api/v1/sessions/${id}`)).json()) as SessionDetail;
        return session;
      };

      test('are possible from the end of the asking run, which shows them', async () => {
        await send(starts, ...call, interrupted({ id: 'i', reason: 'input_required', message: 'How many?' }));
        const waiting = { state: 'needs-input', stateReason: 'How many?', pendingRequestCount: 2, openTurnId: null };
        expect(await summary()).toMatchObject(waiting);
        const page = (await (await target.get(`/api/v1/sessions/${id}/transcript`)).json()) as TranscriptPage;
        expect(page.turns.map(({ id: turnId, items }) => [turnId, items.map(({ kind }) => kind)])).toEqual([
          ['r', ['tool-call', 'request', 'request']],
        ]);
        const [interrupt, question] = await requests();
        expect(interrupt).toMatchObject({ id: 'i', requestKind: 'question', title: 'How many?', outcome: null });
        expect(question).toMatchObject({
          id: 'c',
          requestKind: 'question',
          toolCallId: 'c',
          toolName: 'AskUserQuestion',
          title: 'Which colour?',
          input: questions,
          outcome: null,
        });
        for (const item of [interrupt, question]) expect(item?.openedPosition).toBe(item?.position);
        expect(question?.digest).toBe(
          requestDigest({
            sessionId: id,
            requestId: 'c',
            tool: 'AskUserQuestion',
            input: questions,
            position: question?.position ?? '',
          }),
        );
        const answers = { 'Which colour?': 'red' };
        expect((await answer('c', { answers, digest: question?.digest })).status).toBe(202);
        expect(await sent()).toMatchObject([{ type: 'question.answer', body: { requestId: 'c', answers } }]);
      });

      test('are given by the next message, from anyone', async () => {
        await send(starts, ...call, interrupted({ id: 'i' }, { id: 'p', toolCallId: 'b' }));
        await send(...writes('m'));
        expect((await requests()).map(({ outcome }) => outcome)).toEqual(['answered', 'answered', 'answered']);
        expect(await summary()).toMatchObject({ state: 'working', pendingRequestCount: 0 });
        expect(await refusal(await answer('c', { answers: { it: 'red' } }))).toEqual([409, 'request_resolved']);
      });

      test('are given by a message of the dashboard once the agent has it', async () => {
        await send(starts, ...call, finishes());
        const message = await target.send(`/api/v1/sessions/${id}/messages`, {
          method: 'POST',
          headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ text: 'Blue', clientId: 'm' }),
        });
        expect(message.status).toBe(202);
        expect(await summary()).toMatchObject({ pendingRequestCount: 1 });
        const { messageId } = await message.json();
        const metadata = { interlude: { turn: 'user' as const, userMessageIds: [messageId] } };
        await send({ type: 'RUN_STARTED', threadId: 's', runId: 'r2', metadata });
        expect(await requests()).toMatchObject([{ id: 'c', outcome: 'answered' }]);
        expect(await summary()).toMatchObject({ state: 'working', pendingRequestCount: 0 });
      });

      test('are given by the run that resumes', async () => {
        await send(starts, interrupted({ id: 'i' }, { id: 'p', toolCallId: 'b' }, { id: 'x' }, { id: 'y' }));
        const resume = [
          { interruptId: 'i', status: 'resolved', payload: 3 },
          { interruptId: 'p', status: 'resolved' },
          { interruptId: 'x', status: 'cancelled' },
        ];
        const input = { threadId: 's', runId: 'r2', messages: [], tools: [], context: [], resume };
        await send({ type: 'RUN_STARTED', threadId: 's', runId: 'r2', input });
        expect((await requests()).map(({ outcome }) => outcome)).toEqual(['answered', 'allowed', 'cancelled', null]);
        expect(await summary()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1 });
      });

      test('are given by the result of the call', async () => {
        await send(starts, ...call, finishes());
        await send({ type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId: 'c', content: 'red' });
        expect(await requests()).toMatchObject([{ outcome: 'answered' }]);
        expect(await summary()).toMatchObject({ state: 'idle', pendingRequestCount: 0 });
      });

      test.each([
        ['before the run ends', [own(), finishes()]],
        ['after the run has ended', [finishes(), own()]],
        ['after the run, under another id', [finishes(), own('q')]],
        [
          'after the run, with another input',
          [finishes(), { ...own(), value: { ...(own().value as object), input: {} } }],
        ],
      ] as [string, AgUiEvent[]][])('are not duplicated by an agent that reports them %s', async (_, events) => {
        await send(starts, ...call, ...events.slice(0, -1));
        await send(...events.slice(-1));
        const [item, ...others] = await requests();
        expect(others).toEqual([]);
        expect(item).toMatchObject({ toolCallId: 'c', outcome: null });
        expect(await summary()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1 });
        await send(...writes('m'));
        // The agent reports the outcome itself.
        expect((await request()).outcome).toBe(null);
        await send(resolves(item?.id ?? '', 'answered'));
        expect(await requests()).toMatchObject([{ outcome: 'answered' }]);
        expect(await summary()).toMatchObject({ state: 'working', pendingRequestCount: 0 });
      });

      test('can be marked by ingest only', async () => {
        const metadata = { interlude: { derived: { turnId: 'r' }, replaces: 'p' } };
        await send(starts, opens('p', 'ls'), { ...opens('q', 'id'), metadata });
        expect((await requests()).map((item) => item.id)).toEqual(['p', 'q']);
        expect(await summary()).toMatchObject({ pendingRequestCount: 2 });
      });

      test('end with a failed run, also in the transcript', async () => {
        await send(starts, ...call, interrupted({ id: 'i' }));
        await send({ type: 'RUN_STARTED', threadId: 's', runId: 'r2' }, { type: 'RUN_ERROR', message: 'it broke' });
        expect((await requests()).map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled']);
        expect(await summary()).toMatchObject({ state: 'failed', pendingRequestCount: 0 });
      });
    });
  });
}
