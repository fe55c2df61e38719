import type { InboxItem } from '@interlude/protocol/inbox';
import { needsPerson } from '@interlude/protocol/inbox-rules';
import { EVERYTHING, type Scope } from '@interlude/protocol/scope';
import { groupOf } from '@interlude/protocol/session-predicates';
import { INBOX_KINDS } from '@interlude/protocol/vocabulary';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readScope, unscoped } from '@/lib/server/access/request-context';
import { putArrangement, putRetirement } from '@/lib/server/commands/arrange';
import { postMarks } from '@/lib/server/commands/mark-inbox';
import { readAgents } from '@/lib/server/queries/read-agents';
import { readCounts } from '@/lib/server/queries/read-counts';
import { readInbox, searchInbox, WHOLE_INBOX } from '@/lib/server/queries/read-inbox';
import { readSessions } from '@/lib/server/queries/read-sessions';
import { cursorOf } from '@/lib/server/queries/search-pages';
import { ownerContext } from '@/tests/support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

const T0 = 1_795_170_000_000;
let target: InProcessTarget;
let now = T0;
let seq = 0;
beforeEach(async () => {
  now = T0;
  seq = 0;
  target = await inProcessTarget(() => now);
});
afterEach(() => target.close());

const says = (sessionId: string, event: object) => ingest(target, [record(++seq, { sessionId, event })]);
const fails = async (sessionId: string) => {
  await says(sessionId, { type: 'RUN_STARTED', threadId: sessionId, runId: `r-${sessionId}` });
  await says(sessionId, { type: 'RUN_ERROR', runId: `r-${sessionId}`, message: 'No credit' });
};
const asks = (sessionId: string, id: string, value: object = {}) =>
  says(sessionId, { type: 'CUSTOM', name: 'request:opened', value: { request_id: id, kind: 'permission', ...value } });
const loses = (sessionId: string) =>
  ingest(target, [
    record(++seq, { kind: 'lost', sessionId, lost: { count: 1, reason: 'outbox-full' }, event: undefined }),
  ]);
const pageOf = async (limit: number, after: string, kinds = WHOLE_INBOX.kinds) =>
  readInbox(
    unscoped(target.database),
    { after: cursorOf(after, INBOX_KINDS), limit, by: 'owner' },
    { ...WHOLE_INBOX, kinds },
  );
/** Sessions of all pages in order, with the kinds of their items. */
async function owners(limit: number, kinds = WHOLE_INBOX.kinds): Promise<string[]> {
  const found: InboxItem[] = [];
  let next: string | null = '0';
  while (next !== null) {
    const page = await pageOf(limit, next, kinds);
    found.push(...page.items);
    next = page.next;
  }
  const sessions = [...new Set(found.map(({ sessionId }) => sessionId))];
  const kindsOf = (session: string | null) =>
    found.filter(({ sessionId }) => sessionId === session).map(({ kind }) => kind);
  return sessions.map((session) => `${session}: ${kindsOf(session).join(' ')}`);
}
const allItems = async () => (await readInbox(unscoped(target.database), { after: null, limit: 100 })).items;
const mark = async (body: object) =>
  postMarks(
    { ids: {}, body, request: new Request('http://localhost'), ...ownerContext } as Parameters<typeof postMarks>[0],
    target.context,
  );

/** s1: failure. s2: two permissions and lost records. s3: lost records. s4: permission, older than those of s2. */
async function fourSessions(): Promise<void> {
  await fails('s1');
  now += 1_000;
  await asks('s4', 'q4');
  now += 1_000;
  await asks('s2', 'q1');
  now += 1_000;
  await asks('s2', 'q2');
  now += 1_000;
  await loses('s2');
  await loses('s3');
}

describe('the inbox by owner', () => {
  it('lists each session once, most urgent first, with all of its items', async () => {
    await fourSessions();
    const all = ['s4: permission', 's2: permission permission delivery-gap', 's1: failure', 's3: delivery-gap'];
    for (const limit of [1, 2, 3, 100]) expect([limit, await owners(limit)]).toEqual([limit, all]);
  });

  it('returns all items of a session if one is of the requested kind', async () => {
    await fourSessions();
    expect(await owners(1, ['delivery-gap'])).toEqual(['s2: permission permission delivery-gap', 's3: delivery-gap']);
    expect(await owners(1, ['failure', 'delivery-gap'])).toEqual([
      's1: failure',
      's2: permission permission delivery-gap',
      's3: delivery-gap',
    ]);
  });

  it('searches titles of sessions', async () => {
    await fourSessions();
    await arrange('s3', { name: 'Nightly *export*' });
    const view = unscoped(target.database);
    const found = await searchInbox(
      view,
      { after: null, limit: 5, by: 'owner' },
      { ...WHOLE_INBOX, words: ['export'] },
    );
    expect(found.items.map(({ sessionId, session }) => [sessionId, session])).toEqual([
      ['s3', { title: null, name: 'Nightly *export*' }],
    ]);
  });

  it('names the session of every item as it is named now', async () => {
    await asks('s1', 'q1');
    await says('s1', { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'user' });
    await says('s1', { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Fix the export' });
    expect((await allItems()).map(({ session }) => session)).toEqual([{ title: 'Fix the export', name: null }]);
  });
});

const arrange = (sessionId: string, body: object) =>
  putArrangement({ ids: { sessionId }, body } as Parameters<typeof putArrangement>[0], target.context);

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((total, one) => total + one);

describe('the counts', () => {
  const count = (person = 'local') => readCounts(unscoped(target.database), person, now);

  it('count sessions and agents, not items', async () => {
    await fourSessions();
    const counts = await count();
    expect(counts).toMatchObject({ needsYou: 4, inbox: { all: 4 }, agents: 1, changesAt: null });
    expect(counts.inbox.kinds).toMatchObject({ permission: 2, failure: 1, 'delivery-gap': 2, question: 0 });
    expect(counts.sessions).toMatchObject({ failed: 1, 'needs-input': 2 });
    expect(sum(counts.sessions)).toBe(4);
  });

  it('have each session in the group of its row, and each agent in its state', async () => {
    await fourSessions();
    for (const id of ['f1', 'f2', 'f3']) await fails(id);
    await says('i1', { type: 'RUN_STARTED', threadId: 'i1', runId: 'r-i1' });
    await says('i1', { type: 'RUN_FINISHED', threadId: 'i1', runId: 'r-i1' });
    await ingest(target, [record(1, { producerId: 'p2', agentId: 'b', sessionId: 'of-b' })]);
    const sessions = async () => (await readSessions(unscoped(target.database))).sessions;
    const seenState = (await sessions()).find(({ id }) => id === 'f1')?.stateSince;
    for (const [id, body] of [
      ['f1', { seenState, pinned: true }],
      ['f2', { seenState }],
      ['f3', { archived: true }],
      ['s4', { pinned: true }],
      ['s3', { pinned: true }],
    ] as const) {
      await arrange(id, body);
    }
    const scopes: Scope[] = [EVERYTHING, { kind: 'agents', ids: ['b'], prefixes: [] }];
    for (const scope of scopes) {
      const view = readScope(target.database, scope);
      const expected: Record<string, number> = {};
      for (const session of (await readSessions(view)).sessions) {
        expected[groupOf(session)] = (expected[groupOf(session)] ?? 0) + 1;
      }
      const { groups, sessions, agents, agentStates } = await readCounts(view, 'local', now);
      expect(Object.fromEntries(Object.entries(groups).filter(([, count]) => count > 0))).toEqual(expected);
      expect([sum(groups), sum(agentStates)]).toEqual([sum(sessions), agents]);
      expect(agents).toBe((await readAgents(view, { after: null, limit: 10 })).count);
    }
    expect((await count()).groups).toMatchObject({ pinned: 2, seen: 1, archived: 1, failed: 1, 'needs-input': 2 });
    const { agentStates, alsoFailed } = await count();
    expect([agentStates['needs-input'], agentStates.failed, alsoFailed]).toEqual([1, 0, { active: 1, retired: 0 }]);
  });

  it('have a retired agent apart', async () => {
    await fails('s1');
    const retire = { ids: { agentId: 'a1' }, body: { retired: true } };
    await putRetirement(retire as Parameters<typeof putRetirement>[0], target.context);
    const { agents, agentStates, retiredStates } = await count();
    expect([agents, agentStates.failed, retiredStates.failed]).toEqual([1, 0, 1]);
  });

  it('agree with `needsPerson` for every mark, reader and time', async () => {
    await fourSessions();
    const [failure] = (await allItems()).filter(({ kind }) => kind === 'failure');
    const marks = [
      { mark: 'seen' },
      { mark: 'unseen' },
      { mark: 'snoozed', until: now + 60_000 },
      { mark: 'unsnoozed' },
      { mark: 'claimed' },
      { mark: 'released' },
    ];
    const gap = (await allItems()).find(({ kind, sessionId }) => kind === 'permission' && sessionId === 's4');
    for (const id of [failure?.id, gap?.id]) {
      for (const made of marks) {
        await mark({ ids: [id], ...made });
        for (const person of ['local', 'somebody-else']) {
          for (const later of [0, 60_000]) {
            now += later;
            const items = await allItems();
            const needing = items.filter((item) => needsPerson(item, now, person));
            const expected = new Set(needing.map(({ sessionId }) => sessionId)).size;
            const kinds = needing.map(({ kind, sessionId }) => `${kind} ${sessionId}`);
            const requests = kinds.filter((kind) => kind.startsWith('permission')).length;
            const { needsYou, inbox } = await count(person);
            const shown = [needsYou, sum(inbox.kinds), inbox.requests, inbox.all];
            expect([made.mark, person, later, ...shown]).toEqual([
              made.mark,
              person,
              later,
              ...[expected, new Set(kinds).size, requests, new Set(items.map(({ sessionId }) => sessionId)).size],
            ]);
            now -= later;
          }
        }
      }
    }
  });

  it('name the time at which the next snooze ends', async () => {
    await fourSessions();
    const [one, two] = await allItems();
    await mark({ ids: [one?.id], mark: 'snoozed', until: now + 90_000 });
    await mark({ ids: [two?.id], mark: 'snoozed', until: now + 60_000 });
    expect((await count()).changesAt).toBe(now + 60_000);
    now += 60_000;
    expect((await count()).changesAt).toBe(now + 30_000);
  });
});
