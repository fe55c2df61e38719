import type { NewToken } from '@interlude/protocol/access';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { InboxItem, InboxList, InboxMarked } from '@interlude/protocol/inbox';
import type { AgentDetail, RequestDetail, SessionDetail } from '@interlude/protocol/read-models';
import type { InboxKind } from '@interlude/protocol/vocabulary';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** Inbox items for everything that needs a person, until it is settled. */
export function describeInboxContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`the inbox, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    beforeEach(() => {
      serial += 1;
      id = `inbox-${serial}`;
      seq = 0;
    });

    const write = (fields: object) => ingest(target, [record(++seq, { agentId: id, sessionId: id, ...fields })], 1, id);
    const send = async (...events: AgUiEvent[]) => {
      for (const event of events) await write({ event });
    };
    const custom = (eventName: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name: eventName, value });
    const starts = (runId = 'r'): AgUiEvent => ({ type: 'RUN_STARTED', threadId: 's', runId });
    const fails = (runId = 'r', message = 'No credit'): AgUiEvent => ({ type: 'RUN_ERROR', runId, message });
    const opens = (requestId: string, command: string) =>
      custom('request:opened', { request_id: requestId, kind: 'permission', tool_name: 'Bash', input: { command } });
    const resolves = (requestId: string) => custom('request:resolved', { request_id: requestId, outcome: 'allowed' });
    const hookDies = (source: string) => {
      const insight = { signal: 'hook_fatal', source };
      const log = { level: 'fatal', component: `hook:${source}`, message: 'exit 3', insight };
      return write({ kind: 'log', sessionId: undefined, log });
    };

    const read = async <Model>(path: string) => (await (await target.get(`/api/v1${path}`)).json()) as Model;
    const inbox = async (more = '') => (await read<InboxList>(`/inbox?agent=${id}${more}`)).items;
    const kinds = async () => (await inbox()).map(({ kind, count }) => [kind, count]);
    const only = async () => {
      const items = await inbox();
      expect(items).toHaveLength(1);
      return items[0] as InboxItem;
    };
    const post = (path: string, body: object, method = 'POST', token = target.token) =>
      target.send(`/api/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const mark = async (body: object) => (await (await post('/inbox/marks', body)).json()) as InboxMarked;
    const session = async () => (await read<SessionDetail>(`/sessions/${id}`)).session;

    test('lists every open request, oldest first, until it is resolved', async () => {
      await send(starts(), opens('q', 'ls'), opens('p', 'rm'));
      const items = await inbox();
      expect(items.map(({ kind, title, request }) => [kind, title, request?.id])).toEqual([
        ['permission', 'Bash', 'q'],
        ['permission', 'Bash', 'p'],
      ]);
      await send(resolves('q'));
      expect((await inbox()).map(({ request }) => request?.id)).toEqual(['p']);
    });

    test('returns what a request asks and its outcome, without the rest of its turn', async () => {
      await send(starts(), opens('q', 'ls'));
      const { request } = await only();
      const detail = await read<RequestDetail>(`/sessions/${id}/requests/q`);
      expect(detail).toMatchObject({
        turnId: 'r',
        request: { id: 'q', input: { command: 'ls' }, digest: request?.digest, outcome: null, answer: null },
      });
      expect((await post(`/sessions/${id}/requests/q`, { behavior: 'allow', digest: request?.digest })).status).toBe(
        202,
      );
      expect((await read<RequestDetail>(`/sessions/${id}/requests/q`)).request.answer).toMatchObject({
        behavior: 'allow',
        state: 'queued',
      });
      await send(resolves('q'));
      expect((await read<RequestDetail>(`/sessions/${id}/requests/q`)).request.outcome).toBe('allowed');
      expect((await target.get(`/api/v1/sessions/${id}/requests/never`)).status).toBe(404);
    });

    test('adds an item when a request asks something else under the same id', async () => {
      await send(starts(), opens('q', 'ls'));
      const first = await only();
      await mark({ ids: [first.id], mark: 'seen' });
      await send(opens('q', 'ls'));
      expect(await only()).toMatchObject({ id: first.id, seenAt: expect.any(Number) });
      await send(opens('q', 'rm'));
      const second = await only();
      expect(second.id).not.toBe(first.id);
      expect(second.seenAt).toBeNull();
    });

    test('lists a failure until any person has seen it, and again when it recurs', async () => {
      await send(starts(), fails());
      const item = await only();
      expect(item).toMatchObject({ kind: 'failure', title: 'No credit', sessionId: id });
      const marked = await mark({ ids: [item.id], mark: 'seen' });
      expect(marked.items).toMatchObject([{ id: item.id, doneAt: expect.any(Number) }]);
      const { arrangement, stateSince } = await session();
      expect(arrangement.seenState).toBe(stateSince);
      expect(await inbox()).toEqual([]);
      await send(starts('r2'), fails('r2', 'Again'));
      expect(await only()).toMatchObject({ id: item.id, title: 'Again', seenAt: null, doneAt: null });
      const seenState = (await session()).stateSince;
      await post(`/sessions/${id}/arrangement`, { seenState }, 'PUT');
      expect(await inbox()).toEqual([]);
    });

    test('lists a crashed process, but not one that ended', async () => {
      await send(starts(), custom('session:ended', { exit_code: 0 }));
      expect(await inbox()).toEqual([]);
      await send(custom('session:started', {}), starts('r2'), custom('session:ended', { signal: 'SIGKILL' }));
      expect(await only()).toMatchObject({ kind: 'failure', title: 'killed by SIGKILL' });
      await send(custom('session:started', {}), starts('r3'));
      expect(await inbox()).toEqual([]);
    });

    test('counts failures around an agent, and shows the newest', async () => {
      await hookDies('Stop');
      const first = await only();
      expect(first).toMatchObject({ kind: 'hook-failure', sessionId: null, count: 1, title: 'Stop: exit 3' });
      await mark({ ids: [first.id], mark: 'snoozed', until: 1 });
      await hookDies('PreToolUse');
      const second = await only();
      expect(second).toMatchObject({ id: first.id, count: 2, title: 'PreToolUse: exit 3', snoozedUntil: null });
      await mark({ ids: [first.id], mark: 'seen' });
      expect(await inbox()).toEqual([]);
      expect((await read<AgentDetail>(`/agents/${id}`)).agent.insightCount).toBe(0);
      await hookDies('Stop');
      expect(await only()).toMatchObject({ id: first.id, count: 1, seenAt: null });
    });

    test('counts a session’s missing records, and returns when more are missing after it was seen', async () => {
      await send(starts());
      await write({ kind: 'lost', lost: { count: 3, reason: 'outbox-full' } });
      const item = await only();
      expect(item).toMatchObject({ kind: 'delivery-gap', count: 3, sessionId: id });
      await mark({ ids: [item.id], mark: 'seen' });
      expect(await inbox()).toEqual([]);
      await write({ kind: 'lost', lost: { count: 1, reason: 'outbox-full' } });
      expect(await only()).toMatchObject({ id: item.id, count: 4, seenAt: null });
    });

    test('hides a seen gap and does not announce an unseen one when its session leaves the archive', async () => {
      const archives = (archived: boolean) => post(`/sessions/${id}/arrangement`, { archived }, 'PUT');
      await send(starts());
      await write({ kind: 'lost', lost: { count: 3, reason: 'outbox-full' } });
      const { id: item, since } = await only();
      await mark({ ids: [item], mark: 'claimed' });
      await archives(true);
      expect(await inbox()).toEqual([]);
      await archives(false);
      expect(await only()).toMatchObject({ count: 3, since, claim: { by: { name: 'Local admin' } } });
      await mark({ ids: [item], mark: 'seen' });
      await archives(true);
      await send(starts('r2'));
      expect(await inbox()).toEqual([]);
      await archives(true);
      await write({ kind: 'lost', lost: { count: 2, reason: 'outbox-full' } });
      expect(await inbox()).toEqual([]);
      await archives(false);
      expect(await only()).toMatchObject({ id: item, count: 5, seenAt: null, claim: null });
    });

    test('lists parked records until they are settled, and keeps their claim while their number shrinks', async () => {
      await send(starts());
      for (const task of ['t', 'u']) {
        const began = custom('task:started', { task_id: task, description: task });
        for (const sessionId of [`${id}/b`, `${id}/c`]) await write({ event: began, sessionId });
        await write({ event: custom('task:completed', { task_id: task }) });
      }
      const item = (await inbox()).find(({ kind }) => kind === 'parked') as InboxItem;
      expect(item).toMatchObject({ sessionId: null, count: 2 });
      await mark({ ids: [item.id], mark: 'claimed' });
      const { parked } = await read<AgentDetail>(`/agents/${id}`);
      await post(`/agents/${id}/parked/${parked[0]?.position}/discard`, {});
      expect((await inbox()).find(({ kind }) => kind === 'parked')).toMatchObject({
        count: 1,
        claim: { by: { name: 'Local admin' } },
      });
      await post(`/agents/${id}/parked/${parked[1]?.position}/discard`, {});
      expect((await kinds()).filter(([kind]) => kind === 'parked')).toEqual([]);
      for (const sessionId of [`${id}/b`, `${id}/c`]) {
        await write({ event: custom('task:started', { task_id: 'v', description: 'v' }), sessionId });
      }
      await write({ event: custom('task:completed', { task_id: 'v' }) });
      expect((await inbox()).find(({ kind }) => kind === 'parked')).toMatchObject({ count: 1, claim: null });
    });

    test('keeps an item unseen when it changed after it was shown', async () => {
      const shownOf = async (kind: InboxKind) => {
        const { id: item, updatedPosition } = (await inbox()).find((one) => one.kind === kind) as InboxItem;
        return { id: item, updatedPosition };
      };
      await send(starts('a'), fails('a', 'one'));
      await write({ kind: 'lost', lost: { count: 1, reason: 'outbox-full' } });
      const [failure, gap] = [await shownOf('failure'), await shownOf('delivery-gap')];
      await write({ kind: 'lost', lost: { count: 5, reason: 'outbox-full' } });
      const marked = await mark({ items: [failure, gap], mark: 'seen' });
      expect(marked.changed).toEqual([gap.id]);
      expect(await inbox()).toMatchObject([{ kind: 'delivery-gap', count: 6, seenAt: null, doneAt: null }]);
      await send(starts('b'), fails('b', 'two'));
      for (const made of [{ mark: 'seen' }, { mark: 'snoozed', until: 1 }, { mark: 'claimed' }]) {
        expect((await mark({ items: [failure], ...made })).changed).toEqual([failure.id]);
      }
      expect((await inbox()).find(({ kind }) => kind === 'failure')).toMatchObject({
        title: 'two',
        snoozedUntil: null,
        claim: null,
      });
      const newer = await shownOf('failure');
      await mark({ items: [newer], mark: 'claimed' });
      // A mark by another person does not notify.
      expect(await mark({ items: [newer], mark: 'seen' })).toMatchObject({ changed: [] });
      expect((await kinds()).map(([kind]) => kind)).toEqual(['delivery-gap']);
    });

    test('reopens items that were done by being seen, with their opening, once', async () => {
      await send(starts(), fails());
      await write({ kind: 'lost', lost: { count: 3, reason: 'outbox-full' } });
      const before = await inbox();
      const seen = await mark({ ids: before.map((item) => item.id), mark: 'seen' });
      expect(await inbox()).toEqual([]);
      const items = seen.items.map(({ id: item, updatedPosition }) => ({ id: item, updatedPosition }));
      const reopened = await mark({ items, mark: 'unseen' });
      expect(reopened.changed).toEqual([]);
      const unmarked = before.map((item) => ({ ...item, updatedPosition: expect.any(String) }));
      expect(reopened.items).toEqual(unmarked);
      expect(await inbox()).toEqual(unmarked);
      expect((await session()).arrangement.seenState).toBeNull();
      expect(reopened.applied).toEqual(before.map((item) => item.id));
      const again = await mark({ items, mark: 'unseen' });
      expect(again).toMatchObject({ changed: [], applied: [], items: reopened.items });
    });

    test('reports no item as changed by a mark that is done already', async () => {
      await send(starts(), fails());
      const { id: item } = await only();
      expect((await mark({ ids: [item], mark: 'seen' })).applied).toEqual([item]);
      expect((await mark({ ids: [item], mark: 'seen' })).applied).toEqual([]);
      expect((await mark({ ids: [item], mark: 'claimed' })).applied).toEqual([]);
    });

    test('keeps items done whose cause has ended, or that someone has seen again, when they are marked unseen', async () => {
      await send(starts(), fails());
      const failure = await only();
      const shown = ({ id: item, updatedPosition }: InboxItem) => ({ id: item, updatedPosition });
      const first = await mark({ items: [shown(failure)], mark: 'seen' });
      await mark({ items: first.items.map(shown), mark: 'unseen' });
      const second = await mark({ ids: [failure.id], mark: 'seen' });
      expect(await mark({ items: first.items.map(shown), mark: 'unseen' })).toMatchObject({ changed: [failure.id] });
      await send(starts('r2'));
      expect(await mark({ items: second.items.map(shown), mark: 'unseen' })).toMatchObject({ changed: [failure.id] });
      expect(await inbox()).toEqual([]);
      await send(opens('q', 'ls'));
      const { id: request } = await only();
      await send(resolves('q'));
      expect(await mark({ ids: [request], mark: 'unseen' })).toMatchObject({ changed: [request] });
      expect(await inbox()).toEqual([]);
    });

    test('marks the shown hook failures as seen, and no later ones', async () => {
      await hookDies('Stop');
      await hookDies('Stop');
      const { id: item, updatedPosition } = await only();
      await hookDies('PreToolUse');
      const marked = await mark({ items: [{ id: item, updatedPosition }], mark: 'seen' });
      expect(marked).toMatchObject({ changed: [item], items: [{ count: 1, doneAt: null }] });
      const { insights } = await read<AgentDetail>(`/agents/${id}`);
      expect(insights.map(({ source, seenAt }) => [source, seenAt !== null])).toEqual([
        ['PreToolUse', false],
        ['Stop', true],
        ['Stop', true],
      ]);
      const left = await only();
      expect(
        await mark({
          items: [left].map(({ id: of, updatedPosition: at }) => ({ id: of, updatedPosition: at })),
          mark: 'seen',
        }),
      ).toMatchObject({ changed: [] });
      expect(await inbox()).toEqual([]);
    });

    test('refuses to claim a claimed item unless it is taken over', async () => {
      await send(starts(), opens('q', 'ls'));
      const { id: item } = await only();
      const { token, credential } = (await (
        await post('/tokens', { role: 'operator', name: 'Ada' })
      ).json()) as NewToken;
      const [ada, bob] = [
        { id: credential.id, name: 'Ada' },
        { id: 'local', name: 'Local admin' },
      ];
      const who = async (body: object, sender = target.token) => {
        const response = await post('/inbox/marks', { ids: [item], ...body }, 'POST', sender);
        return ((await response.json()) as InboxMarked).items[0]?.claim?.by ?? null;
      };
      // The claimant is the sender, regardless of the body.
      const named = { by: { id: 'member-1', name: 'Somebody else' } };
      expect(await who({ mark: 'claimed', ...named }, token)).toEqual(ada);
      expect(await who({ mark: 'claimed', by: ada })).toEqual(ada);
      expect(await who({ mark: 'claimed', ...named, takeOver: true })).toEqual(bob);
      expect(await who({ mark: 'released' })).toBeNull();
    });

    test('streams each change once, and replays only the current items', async () => {
      const stream = await target.stream('topic=fleet');
      await stream.frame('up-to-date');
      const updates = () => stream.frames.flatMap((frame) => (frame.event === 'inbox' ? [frame.data] : []));
      const mine = () => (updates() as unknown as InboxItem[]).filter(({ agentId }) => agentId === id);
      // A slow reader gets only the latest version of a row.
      const untilUpdates = (count: number) => stream.until(() => mine().length >= count);
      await send(starts(), opens('q', 'ls'));
      await untilUpdates(1);
      const { updatedPosition, id: item } = await only();
      await mark({ ids: [item], mark: 'seen' });
      await mark({ ids: [item], mark: 'seen' });
      await untilUpdates(2);
      await send(resolves('q'), opens('p', 'rm'));
      await untilUpdates(4);
      expect(mine().map(({ request, seenAt, doneAt }) => [request?.id, seenAt !== null, doneAt !== null])).toEqual([
        ['q', false, false],
        ['q', true, false],
        ['q', true, true],
        ['p', false, false],
      ]);
      const replayed = async (after: string | number) => {
        const reader = await target.stream(`topic=fleet&after=${after}`);
        await reader.frame('up-to-date');
        const items = reader.frames.flatMap((frame) => (frame.event === 'inbox' ? [frame.data] : []));
        return (items as unknown as InboxItem[])
          .filter(({ agentId }) => agentId === id)
          .map(({ request }) => request?.id);
      };
      expect(await replayed(updatedPosition)).toEqual(['q', 'p']);
      expect(await replayed(0)).toEqual(['p']);
    });

    test('returns pages filtered by kind, session and text, with counts of all matches', async () => {
      await send(starts(), opens('q', 'ls'), opens('p', 'rm'));
      await hookDies('Stop');
      const seen: string[] = [];
      for (let after: string | null = '0'; after !== null; ) {
        const page: InboxList = await read<InboxList>(`/inbox?agent=${id}&limit=1&after=${encodeURIComponent(after)}`);
        expect(page.counts).toMatchObject({ permission: 2, 'hook-failure': 1, parked: 0 });
        seen.push(...page.items.map(({ kind }) => kind));
        after = page.next;
      }
      expect(seen).toEqual(['permission', 'permission', 'hook-failure']);
      const found = async (more: string) => (await inbox(more)).map(({ kind }) => kind as InboxKind);
      expect(await found('&kind=hook-failure&kind=parked')).toEqual(['hook-failure']);
      expect(await found(`&session=${id}`)).toEqual(['permission', 'permission']);
      expect(await found('&q=STOP')).toEqual(['hook-failure']);
      expect(await found('&q=nothing-has-this')).toEqual([]);
      expect(await errorOf(await target.get('/api/v1/inbox?kind=x'))).toMatchObject({ code: 'invalid_argument' });
      expect(await errorOf(await target.get('/api/v1/inbox?after=x'))).toMatchObject({ code: 'invalid_argument' });
    });

    test('refuses incomplete marks', async () => {
      for (const body of [
        { ids: [], mark: 'seen' },
        { ids: ['x'], mark: 'snoozed' },
        { ids: ['x'], mark: 'done' },
        { mark: 'seen' },
        { ids: ['x'], items: [{ id: 'x', updatedPosition: '1' }], mark: 'seen' },
        { items: [{ id: 'x' }], mark: 'seen' },
        { items: [], mark: 'seen' },
      ]) {
        expect((await post('/inbox/marks', body)).status).toBe(400);
      }
      expect(await mark({ ids: ['unknown'], mark: 'seen' })).toMatchObject({ items: [] });
    });
  });
}
