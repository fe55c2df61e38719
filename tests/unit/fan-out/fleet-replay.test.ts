import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import { listenTo } from '@/tests/support/frames';
import { type TestDatabase, temporaryDatabase } from '../../support/database';
import { randomFrom } from '../../support/random';

/** A fleet stream replays only the tasks and obligations its reader needs, not their whole history. */
type Kind = 'task' | 'obligation';
type Step = { kind: Kind; id: string; isOpen: boolean; session?: string };

let database: TestDatabase;
let fanOut: FanOut;
/** Rows after each step, by position. */
let history: Step[];
beforeEach(async () => {
  database = await temporaryDatabase();
  fanOut = new FanOut(database, { pollMs: 60_000 });
  history = [];
});
afterEach(async () => {
  fanOut.close();
  await database.dispose();
});

const SETTLED = { task: 'completed', obligation: 'answered' } as const;
const OPEN = { task: 'running', obligation: 'owed' } as const;

/** Each step takes the next position, like a changed row. */
async function happens(...steps: Step[]): Promise<void> {
  const first = history.length + 1;
  const bornAt = new Map<string, number>();
  for (const [index, { kind, id }] of [...history, ...steps].entries()) {
    const key = `${kind} ${id}`;
    if (!bornAt.has(key)) bornAt.set(key, index + 1);
  }
  await database.writes.run(async (transaction) => {
    await transaction.batch(
      steps.map(({ kind, id, isOpen, session = 's1' }, index) => {
        const [name, key] = kind === 'task' ? ['tasks', 'id'] : ['obligations', 'message_id'];
        const state = kind === 'task' ? 'status' : 'state';
        const body = JSON.stringify(kind === 'task' ? { id } : { messageId: id });
        const born = bornAt.get(`${kind} ${id}`) ?? 0;
        const value = isOpen ? OPEN[kind] : SETTLED[kind];
        return born === first + index
          ? {
              sql: `INSERT INTO ${name} (session_id, position, ${key}, agent_id, ${state}, body, updated_position)
                VALUES (?, ?, ?, 'a1', ?, ?, ?)`,
              args: [session, born, id, value, body, born],
            }
          : {
              sql: `UPDATE ${name} SET ${state} = ?, updated_position = ? WHERE session_id = ? AND ${key} = ?`,
              args: [value, first + index, session, id],
            };
      }),
    );
    await transaction.execute({
      sql: 'INSERT INTO counter (id, position) VALUES (1, ?1) ON CONFLICT DO UPDATE SET position = ?1',
      args: [first + steps.length - 1],
    });
  });
  history.push(...steps);
}

/** Open items at a position, by kind and id. */
function openAt(position: number): Set<string> {
  const open = new Set<string>();
  for (const { kind, id, isOpen } of history.slice(0, position)) {
    if (isOpen) open.add(`${kind} ${id}`);
    else open.delete(`${kind} ${id}`);
  }
  return open;
}

/** All replayed rows, in order. */
async function replay(after: number, ...more: string[]): Promise<Step[]> {
  const reader = await listenTo(fanOut, ['fleet', ...more], { after });
  await reader.frame('up-to-date');
  await reader.cancel();
  return reader.frames.flatMap((frame): Step[] => {
    if (frame.event === 'task') return [{ kind: 'task', id: frame.data.id, isOpen: frame.data.status === 'running' }];
    if (frame.event === 'obligation')
      return [{ kind: 'obligation', id: frame.data.messageId, isOpen: frame.data.state === 'owed' }];
    return [];
  });
}

/** Runs a step before each page of a replay, as long as there are any. */
function betweenPages(happening: (page: number) => Promise<void>): void {
  const { reader } = database;
  const read = reader.batch.bind(reader);
  let page = 0;
  vi.spyOn(reader, 'batch').mockImplementation(async (...of) => {
    page += 1;
    await happening(page);
    return read(...of);
  });
}

const names = (steps: Step[]) => steps.map(({ kind, id }) => `${kind} ${id}`);
const each = (count: number, kind: Kind, isOpen: boolean): Step[] =>
  Array.from({ length: count }, (_, n) => ({ kind, id: `${kind}-${n}`, isOpen }));
const many = (count: number, kind: Kind, session?: string): Step[] =>
  Array.from({ length: count }, (_, n) => [
    { kind, id: `${kind}-${session ?? ''}${n}`, isOpen: true, session },
    { kind, id: `${kind}-${session ?? ''}${n}`, isOpen: false, session },
  ]).flat();

describe('a fleet stream from the start', () => {
  test('replays open and recent tasks, not the whole history', async () => {
    await happens({ kind: 'task', id: 'old', isOpen: true }, { kind: 'obligation', id: 'owed', isOpen: true });
    await happens(...many(10_000, 'obligation'), ...many(2_000, 'task'));
    const replayed = await replay(0);
    expect(names(replayed).filter((name) => name.startsWith('obligation'))).toEqual(['obligation owed']);
    const tasks = replayed.filter(({ kind }) => kind === 'task');
    expect(tasks[0]).toEqual({ kind: 'task', id: 'old', isOpen: true });
    expect(tasks).toHaveLength(1 + 500);
    expect(tasks.at(-1)?.id).toBe('task-1999');
  });

  // reads spans of 4,096 changes, each of which finds tasks that started before it
  test('replays 500 ended tasks, however many ran at once', async () => {
    await happens(...each(10_000, 'task', true), ...each(10_000, 'task', false));
    await happens(...each(5_000, 'obligation', true), ...each(5_000, 'obligation', false));
    const replayed = await replay(0);
    expect(replayed).toEqual(each(10_000, 'task', false).slice(-500));
  });
});

describe('a resumed fleet stream', () => {
  test('sends the end of open items, but no items that started and ended since', async () => {
    await happens({ kind: 'task', id: 'slow', isOpen: true }, { kind: 'obligation', id: 'owed', isOpen: true });
    const after = history.length;
    await happens({ kind: 'task', id: 'slow', isOpen: false }, { kind: 'obligation', id: 'owed', isOpen: false });
    await happens(...many(600, 'obligation'), ...many(600, 'task'));
    const replayed = names(await replay(after));
    expect(replayed.slice(0, 2)).toEqual(['task slow', 'obligation owed']);
    expect(replayed).toHaveLength(2 + 500);
  });

  test('sends everything of its own session topics', async () => {
    await happens(...many(600, 'task', 's1'), ...many(600, 'task', 's2'), ...many(10, 'obligation', 's1'));
    const replayed = await replay(1, 'session:s1');
    expect(replayed.filter(({ id }) => id.includes('s1')).length).toBe(600 + 10);
    expect(replayed.filter(({ id }) => id.includes('s2')).length).toBe(500);
  });

  test('sends an end during the replay, and no row twice otherwise', async () => {
    await happens({ kind: 'task', id: 'before', isOpen: true });
    const after = history.length;
    const [task, obligation]: Step[] = [
      { kind: 'task', id: 'since', isOpen: true },
      { kind: 'obligation', id: 'since', isOpen: true },
    ];
    await happens(task as Step, obligation as Step, ...each(9_000, 'task', true), ...each(9_000, 'task', false));
    const ended = () => happens({ ...(task as Step), isOpen: false }, { ...(obligation as Step), isOpen: false });
    betweenPages(async (page) => {
      // followed by enough rows that they are no longer recent
      if (page === 3) await ended().then(() => happens(...many(600, 'task', 's2')));
    });
    const replayed = await replay(after);
    const told = replayed.filter(({ id }) => id === 'since');
    expect(told.map(({ kind, isOpen }) => [kind, isOpen])).toEqual([
      ['task', true],
      ['obligation', true],
      ['task', false],
      ['obligation', false],
    ]);
    // an end before the replay is sent only if recent, an end during the replay always
    expect(replayed.filter(({ id }) => id.startsWith('task-'))).toHaveLength(600);
  });

  test.each([1, 3, 500])('knows all open items wherever it resumes, with pages of %i rows', async (rows) => {
    fanOut = new FanOut(database, { pollMs: 60_000, page: { rows, bytes: 1_000_000 } });
    const { next } = randomFrom(7);
    for (let round = 0; round < 80; round += 1) {
      const kind = next() < 0.5 ? 'task' : 'obligation';
      const open = [...openAt(history.length)].filter((name) => name.startsWith(kind));
      const ended = open[Math.floor(next() * open.length)];
      if (ended !== undefined && next() < 0.5) {
        await happens({ kind, id: ended.split(' ')[1] as string, isOpen: false });
      } else await happens({ kind, id: `${kind}${round}`, isOpen: true });
    }
    for (let after = 0; after <= history.length; after += 10) {
      const known = openAt(after);
      for (const { kind, id, isOpen } of await replay(after)) {
        if (isOpen) known.add(`${kind} ${id}`);
        else known.delete(`${kind} ${id}`);
      }
      expect([after, [...known].sort()]).toEqual([after, [...openAt(history.length)].sort()]);
    }
  });

  test.each([1, 3, 500])(
    'knows all open items when rows change during the replay, with pages of %i rows',
    async (rows) => {
      fanOut = new FanOut(database, { pollMs: 60_000, page: { rows, bytes: 1_000_000 } });
      const { next } = randomFrom(11);
      const step = async () => {
        const kind = next() < 0.3 ? 'task' : 'obligation';
        const open = [...openAt(history.length)].filter((name) => name.startsWith(kind));
        const ended = open[Math.floor(next() * open.length)];
        if (ended !== undefined && next() < 0.6)
          await happens({ kind, id: ended.split(' ')[1] as string, isOpen: false });
        else await happens({ kind, id: `${kind}${history.length}`, isOpen: true });
      };
      for (let round = 0; round < 40; round += 1) await step();
      let left = 0;
      betweenPages(async () => {
        if (left > 0 && next() < 0.5) await step();
        left -= 1;
      });
      for (let after = 0; after <= 40; after += 10) {
        const known = openAt(after);
        left = 40;
        for (const { kind, id, isOpen } of await replay(after)) {
          if (isOpen) known.add(`${kind} ${id}`);
          else known.delete(`${kind} ${id}`);
        }
        expect([after, [...known].sort()]).toEqual([after, [...openAt(history.length)].sort()]);
      }
    },
  );
});
