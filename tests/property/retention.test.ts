import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Frame } from '@interlude/protocol/frames';
import { comparePositions, positionFromNumber } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import {
  awaitOlder,
  foldTranscript,
  prependTurns,
  type TranscriptState,
  transcriptFromPage,
} from '@interlude/protocol/projections/transcript';
import type { TranscriptPage, Turn } from '@interlude/protocol/read-models';
import { EVERYTHING } from '@interlude/protocol/scope';
import type { Row } from '@libsql/client';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { sessionFromRow } from '@/db/read-model-rows';
import { unscoped } from '@/lib/server/access/request-context';
import { readAfter, readBounds, replayFrom } from '@/lib/server/event-log/read-after';
import { FanOut, resume } from '@/lib/server/fan-out/fan-out';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { removeOldEvents } from '@/lib/server/retention/remove-history';
import { removeOldTurns } from '@/lib/server/retention/remove-turns';
import { arbitraryBatchesWithSnapshots } from '../support/arbitrary-events';
import type { FrameReader } from '../support/frames';
import { listenTo } from '../support/frames';
import { RetainedServer } from '../support/retained-server';
import { message } from '../support/turn-events';

/**
 * After retention at any point of any history, the remaining rows are complete, open work is kept, removed rows are
 * gone, and live readers see what a reload shows.
 */

const SESSIONS = ['s1', 's2'] as const;
type SessionId = (typeof SESSIONS)[number];

type Step =
  | { do: 'write'; sessionId: SessionId; events: AgUiEvent[] }
  /** Ends all open work; tasks only if `tasks` is set. */
  | { do: 'settle'; sessionId: SessionId; tasks: boolean }
  /**
   * Removes what started before a turn, or in the first percent of positions. `halfway`: the process is killed in
   * between.
   */
  | { do: 'remove'; sessionId: SessionId; limit: { before: number } | { percent: number }; halfway: boolean }
  | { do: 'join'; sessionId: SessionId; limit: number; isLive: boolean }
  /** Cuts a stream, which resumes from the reader's last complete position. */
  | { do: 'resume'; watcher: number }
  /** Requests an older page, or receives it. */
  | { do: 'older'; watcher: number }
  /** No reads for a while. */
  | { do: 'lag' };

const sessionId = fc.constantFrom(...SESSIONS, 's1' as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(sessionId, arbitraryBatchesWithSnapshots)
      .map(([sessionId, batches]): Step => ({ do: 'write', sessionId, events: batches.flat().slice(0, 25) })),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('settle' as const), sessionId, tasks: fc.boolean() }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('remove' as const),
      sessionId,
      limit: fc.oneof(
        fc.record({ before: fc.nat(30) }),
        fc.record({ before: fc.nat(30) }),
        fc.record({ percent: fc.integer({ min: 1, max: 100 }) }),
        fc.constant({ percent: 100 }),
      ),
      halfway: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('join' as const),
      sessionId,
      limit: fc.constantFrom(1, 2, 3, 200),
      isLive: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('resume' as const), watcher: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('older' as const), watcher: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.constant<Step>({ do: 'lag' }) },
);

let world: World | null = null;
afterEach(async () => {
  await world?.close();
  world = null;
});

/** A reader of a session. */
interface Watcher {
  sessionId: SessionId;
  state: TranscriptState;
  /** An older page in transit. */
  older: TranscriptPage | null;
  /** Its stream; null if it polls. */
  reader: FrameReader | null;
}

class World {
  readonly server: RetainedServer;
  readonly #watchers: Watcher[] = [];
  readonly #fanOut: FanOut;
  readonly #turnCounts = new Map<string, number>();

  constructor(server: RetainedServer) {
    this.server = server;
    this.#fanOut = new FanOut(server.target.database, { page: { rows: 3, bytes: 100_000 }, pollMs: 60_000 });
  }

  async close(): Promise<void> {
    for (const { reader } of this.#watchers) await reader?.cancel();
    this.#fanOut.close();
    await this.server.close();
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'write':
        return this.#write(step.sessionId, step.events);
      case 'settle':
        return this.#settle(step.sessionId, step.tasks);
      case 'remove':
        return this.#remove(step);
      case 'join': {
        const page = await this.page(step.sessionId, step.limit);
        if (page === null) return;
        const watcher: Watcher = {
          sessionId: step.sessionId,
          state: transcriptFromPage(page),
          older: null,
          reader: null,
        };
        this.#watchers.push(watcher);
        if (step.isLive) await this.#listen(watcher);
        return;
      }
      case 'resume': {
        const watcher = this.#watcher(step.watcher);
        if (watcher?.reader != null) await this.#listen(watcher);
        return;
      }
      case 'older':
        return this.#older(step.watcher);
      case 'lag':
        return;
    }
  }

  /** Run ids are reused once their turn is removed. The agent usually ends its open run first. */
  async #write(sessionId: string, events: readonly AgUiEvent[]): Promise<void> {
    const used = new Set((await this.rows('SELECT id FROM turns WHERE session_id = ?', sessionId)).map(({ id }) => id));
    let open: string | undefined;
    const named = events.map((event): AgUiEvent => {
      if (event.type === 'RUN_STARTED') {
        let count = 1;
        while (used.has(`r${count}`)) count += 1;
        open = `r${count}`;
        used.add(open);
        return { ...event, runId: open };
      }
      if (event.type === 'RUN_FINISHED' && event.runId !== 'r1') return { ...event, runId: open };
      return event;
    });
    await this.server.write(named, sessionId);
  }

  async #settle(sessionId: string, tasks: boolean): Promise<void> {
    const [session] = await this.rows('SELECT places, memory FROM sessions WHERE id = ?', sessionId);
    if (session === undefined) return;
    const open: { id: string }[] = JSON.parse(String(session.memory)).fold?.pendingRequests ?? [];
    const obligations = await this.rows(
      `SELECT message_id AS id FROM obligations WHERE session_id = ? AND state = 'owed'`,
      sessionId,
    );
    const running = tasks
      ? await this.rows(`SELECT id, run_id FROM tasks WHERE session_id = ? AND status = 'running'`, sessionId)
      : [];
    await this.server.write(
      [
        { type: 'RUN_FINISHED' },
        ...open.map(({ id }) => ({ type: 'CUSTOM', name: 'request:resolved', value: { request_id: id } })),
        ...obligations.map(({ id }) => ({ type: 'CUSTOM', name: 'obligation:waived', value: { message_id: id } })),
        ...running.map(({ id, run_id }) => ({
          type: 'CUSTOM',
          name: 'task:completed',
          value: { task_id: id, status: 'completed', ...(run_id !== null && { run_id }) },
        })),
      ],
      sessionId,
    );
  }

  async #remove({ sessionId, limit: wanted, halfway }: Step & { do: 'remove' }): Promise<void> {
    const { database } = this.server.target;
    const limit = await this.#limitOf(sessionId, wanted);
    const [counter] = await this.rows('SELECT position FROM counter');
    const placedAfter = Number(counter?.position ?? 0);
    const before = await this.open(sessionId, placedAfter);
    const expected = await this.#expectedCut(sessionId, limit, before);
    const others = await this.#othersThan(sessionId);
    const owned = await this.#owned(sessionId);
    const old = await this.page(sessionId);
    const turnsReported = old?.removed?.turns ?? 0;
    const removeTurns = () =>
      database.writes.run((transaction) =>
        removeOldTurns(transaction, sessionId, { position: limit, before: Number.MAX_SAFE_INTEGER }, this.server.now),
      );
    while (await removeTurns());
    if (!halfway) await this.#removeEvents(sessionId);
    const page = await this.page(sessionId);
    const kept = (old?.turns ?? []).filter(({ position }) => comparePositions(position, expected) > 0);
    const gone = (old?.turns ?? []).slice(0, (old?.turns ?? []).length - kept.length);
    // remaining rows are unchanged, except for the start positions of tasks
    expect(withoutPlaced(page?.turns ?? [], placedAfter)).toEqual(kept);
    expect(page?.removed?.turns ?? 0).toBe(turnsReported + gone.filter(({ kind }) => kind !== 'none').length);
    expect(await this.open(sessionId, placedAfter)).toEqual(before);
    expect(await this.#othersThan(sessionId)).toEqual(others);
    await this.#removedTogether(sessionId, expected, owned, new Set(kept.map(({ id }) => id)));
    if (halfway) return;
    await this.#onlyShownEvents(sessionId);
    const rows = await this.#everything();
    expect(await removeTurns()).toBe(false);
    await this.#removeEvents(sessionId);
    expect(await this.#everything()).toEqual(rows);
  }

  async #limitOf(sessionId: string, wanted: (Step & { do: 'remove' })['limit']): Promise<number> {
    if ('percent' in wanted) {
      const [counter] = await this.rows('SELECT position FROM counter');
      return Math.floor((Number(counter?.position ?? 0) * wanted.percent) / 100);
    }
    const turns = await this.rows(
      `SELECT position FROM turns WHERE session_id = ? AND kind <> 'none' ORDER BY position`,
      sessionId,
    );
    return Number(turns[wanted.before % Math.max(1, turns.length)]?.position ?? 0) - 1;
  }

  async #removeEvents(sessionId: string): Promise<void> {
    const { writes } = this.server.target.database;
    for (let after: number | null = 0; after !== null; ) {
      const from: number = after;
      after = await writes.run((transaction) => removeOldEvents(transaction, sessionId, from));
    }
  }

  /** Open work: identical before and after, except for the placements of tasks. */
  async open(sessionId: string, placedAfter: number) {
    const turns = withoutPlaced((await this.page(sessionId))?.turns ?? [], placedAfter);
    const [session] = await this.rows('SELECT * FROM sessions WHERE id = ?', sessionId);
    const { fold } = JSON.parse(String(session?.memory ?? '{}'));
    const requests: { id: string; openedPosition: string }[] = fold?.pendingRequests ?? [];
    const ask = (sql: string) => this.rows(sql, sessionId);
    return {
      turn: turns.find(({ state }) => state === 'open') ?? null,
      openTurnId: session === undefined ? null : sessionFromRow(session).openTurnId,
      requests,
      items: turns
        .flatMap(({ items }) => items)
        .filter((item) => item.kind === 'request' && requests.some(({ id }) => id === item.id)),
      obligations: await ask(`SELECT * FROM obligations WHERE session_id = ? AND state = 'owed' ORDER BY position`),
      running: (
        await ask(`SELECT id, run_id, position, body FROM tasks WHERE session_id = ? AND status = 'running'`)
      ).map(({ body, ...row }) => {
        const { startedInTurnId: _, answeredInTurnId: __, ...task } = JSON.parse(String(body));
        return { ...row, ...task };
      }),
      cards: await ask(
        `SELECT position, payload FROM events WHERE session_id = ? AND turn_id IN (
          SELECT 'task:' || id FROM tasks WHERE session_id = events.session_id AND status = 'running')
          ORDER BY position`,
      ),
    };
  }

  /** Found by trying each candidate: nothing open before it and no turn that spans it. */
  async #expectedCut(
    sessionId: string,
    limit: number,
    { turn, requests, obligations }: Awaited<ReturnType<World['open']>>,
  ): Promise<string> {
    const [session] = await this.rows('SELECT removed_up_to FROM sessions WHERE id = ?', sessionId);
    const turns = await this.rows(
      `SELECT position, (SELECT max(position) FROM events WHERE session_id = turns.session_id AND turn_id = turns.id) AS last
        FROM turns WHERE session_id = ?`,
      sessionId,
    );
    const open = [
      turn?.position,
      ...requests.map((each) => each.openedPosition),
      ...obligations.map((each) => each.position),
    ]
      .filter((position) => position != null)
      .map(Number);
    const starts = [...turns.map(({ position }) => Number(position)), ...open].filter((position) => position <= limit);
    const cuts = [limit, ...starts.map((position) => position - 1)].sort((a, b) => b - a);
    for (const cut of cuts.filter((cut) => cut > Number(session?.removed_up_to ?? 0))) {
      const isCutApart = turns.some(({ position, last }) => Number(position) <= cut && Number(last) > cut);
      if (!isCutApart && open.every((position) => position > cut)) return positionFromNumber(cut);
    }
    return positionFromNumber(Number(session?.removed_up_to ?? 0));
  }

  #owned(sessionId: string): Promise<Row[]> {
    return this.rows(
      `SELECT position, updated_position, id, status <> 'running' AS is_over, body->>'$.answeredInTurnId' AS answered_in
          FROM tasks WHERE session_id = ?1
        UNION ALL SELECT position, updated_position, message_id, state <> 'owed', body->>'$.answeredInTurnId'
          FROM obligations WHERE session_id = ?1 ORDER BY 1`,
      sessionId,
    );
  }

  /** Removes exactly the tasks and replies that no later event mentions. */
  async #removedTogether(sessionId: string, cut: string, before: Row[], turnIds: Set<string>): Promise<void> {
    const left = new Set((await this.#owned(sessionId)).map(({ position }) => position));
    const later = await this.rows(
      `SELECT position, payload FROM events WHERE session_id = ? AND position > ${cut}
        AND name IS NOT 'interlude:removed' ORDER BY position`,
      sessionId,
    );
    const mentioned = later.map(({ payload }) => String(payload)).join();
    for (const { position, updated_position: changedAt, id, is_over: isOver, answered_in: answeredIn } of before) {
      const isShown = Number(position) > Number(cut) || Number(isOver) === 0 || turnIds.has(String(answeredIn));
      if (isShown) expect(left).toContain(position);
      // compare rows changed on both sides of the cut last
      else if (later.length === 0 || (!mentioned.includes(`"${id}"`) && Number(changedAt) < Number(later[0]?.position)))
        expect(left).not.toContain(position);
    }
  }

  /** Before the cut, only events of existing turns and tasks remain. */
  async #onlyShownEvents(sessionId: string): Promise<void> {
    const left = await this.rows(
      `SELECT position, turn_id, payload FROM events AS e WHERE session_id = ?1
        AND position <= (SELECT removed_up_to FROM sessions WHERE id = ?1)
        AND NOT EXISTS (SELECT 1 FROM turns WHERE session_id = ?1 AND id = e.turn_id)
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE session_id = ?1 AND 'task:' || id = e.turn_id)`,
      sessionId,
    );
    expect(left).toEqual([]);
  }

  async #othersThan(sessionId: string): Promise<Row[][]> {
    const ask = (table: string) =>
      this.rows(`SELECT * FROM ${table} WHERE session_id <> ? ORDER BY position`, sessionId);
    return Promise.all(['events', 'turns', 'tasks', 'obligations'].map(ask));
  }

  #everything(): Promise<Row[][]> {
    const tables = ['counter', 'producers', 'agents', 'sessions', 'events', 'turns', 'tasks', 'obligations', 'inbox'];
    return Promise.all(tables.map((table) => this.rows(`SELECT * FROM ${table} ORDER BY 1, 2`)));
  }

  async #older(at: number): Promise<void> {
    const watcher = this.#watcher(at);
    if (watcher === undefined) return;
    const { state, older, sessionId } = watcher;
    const [oldest] = state.turns;
    if (older !== null) {
      watcher.state = prependTurns(state, older);
      watcher.older = null;
    } else if (state.hasMore && oldest !== undefined) {
      const range = { before: oldest.position, limit: 2 };
      watcher.older = await readTranscript(unscoped(this.server.target.database), sessionId, range);
      watcher.state = awaitOlder(state);
    }
  }

  #watcher(at: number): Watcher | undefined {
    return this.#watchers[at % Math.max(1, this.#watchers.length)];
  }

  async #listen(watcher: Watcher): Promise<void> {
    await watcher.reader?.cancel();
    const after = Number(watcher.state.position);
    watcher.reader = await listenTo(this.#fanOut, [`session:${watcher.sessionId}`], { after });
  }

  /** Entries received by stream; null after a gap. */
  async #received({ sessionId, reader }: Watcher & { reader: FrameReader }): Promise<EventEntry[] | null> {
    const [newest] = await this.rows('SELECT max(position) AS position FROM events WHERE session_id = ?', sessionId);
    const eventsOf = (frames: readonly Frame[]) =>
      frames.flatMap((frame) =>
        frame.event === 'session-event' ? [{ position: String(frame.id), ...frame.data }] : [],
      );
    const isOver = (frame: Frame) =>
      frame.event === 'bye' ||
      (frame.event === 'hello' && frame.data.resume === 'gap') ||
      ('position' in frame.data &&
        frame.event !== 'hello' &&
        Number(frame.data.position) >= Number(newest?.position)) ||
      Number(frame.id) >= Number(newest?.position);
    const frames = await reader.until((all) => all.some(isOver));
    const isGap = frames.some(({ event, data }) => event === 'bye' || (event === 'hello' && data.resume === 'gap'));
    return isGap ? null : eventsOf(frames);
  }

  /** Delivers pending changes to all readers and compares each with a reload. */
  async deliver(): Promise<void> {
    const { database } = this.server.target;
    for (const watcher of this.#watchers) {
      const { sessionId, state } = watcher;
      const after = Number(state.position);
      const page = (await this.page(sessionId)) as TranscriptPage;
      const { reader } = watcher;
      const { resume: how } = resume(after, await readBounds(database, scopeOf(sessionId)));
      const polled = how === 'gap' ? null : await this.eventsAfter(sessionId, after);
      const entries = reader === null ? polled : await this.#received({ ...watcher, reader });
      // reload after a gap, or if the state requests it
      const folded = entries && foldTranscript(state, entries);
      watcher.state = folded === null || folded.incomplete ? transcriptFromPage(page) : folded;
      if (watcher.state !== folded) watcher.older = null;
      if (reader !== null && entries === null) await this.#listen(watcher);
      const { turns, places, removed, hasMore } = watcher.state;
      expect(places).toEqual(page.places);
      expect(removed).toEqual(page.removed);
      if (turns.length > 0 && watcher.older === null) {
        expect(turns).toEqual(page.turns.slice(page.turns.length - turns.length));
        if (!hasMore) expect(turns).toHaveLength(page.turns.length);
      }
    }
  }

  async eventsAfter(sessionId: string, after: number): Promise<EventEntry[]> {
    const wanted = scopeOf(sessionId);
    const limits = { rows: 100_000, bytes: 100_000_000 };
    const { rows } = await readAfter(this.server.target.database, wanted, after, replayFrom(after), limits);
    return rows.flatMap((row) =>
      row.kind === 'event'
        ? [{ ...row, position: positionFromNumber(row.position), event: JSON.parse(row.payload) }]
        : [],
    ) as EventEntry[];
  }

  async check(): Promise<void> {
    expect(await this.server.faults()).toEqual([]);
    for (const row of await this.rows('SELECT * FROM sessions')) {
      const { id, owedCount, overdueCount, runningTaskCount, turnCount } = sessionFromRow(row);
      const [counted] = await this.rows(OF_SESSION, id);
      expect({ id, owedCount, overdueCount, runningTaskCount }).toEqual({ id, ...counted });
      // total ever created
      expect(turnCount).toBeGreaterThanOrEqual(this.#turnCounts.get(id) ?? 0);
      this.#turnCounts.set(id, turnCount);
    }
    const [agent] = await this.rows('SELECT body FROM agents');
    if (agent === undefined) return;
    const { owedCount, runningTaskCount, sessionCount } = JSON.parse(String(agent.body));
    expect([{ owedCount, runningTaskCount, sessionCount }]).toEqual(await this.rows(OF_AGENT));
  }

  page(sessionId: string, limit = 1_000) {
    return this.server.page(limit, sessionId);
  }

  async rows(sql: string, ...args: string[]): Promise<Row[]> {
    const { rows } = await this.server.target.database.reader.execute({ sql, args });
    return rows.map((row) => ({ ...row }) as Row);
  }
}

/** Excludes tasks placed since, when their turns were removed. */
function withoutPlaced(turns: readonly Turn[], since: number): Turn[] {
  return turns.flatMap((turn) => {
    const items = turn.items.filter(
      (item) => item.kind !== 'task' || item.phase !== 'started' || Number(item.position) <= since,
    );
    if (items.length === turn.items.length) return [turn];
    return items.length === 0 && Number(turn.position) > since ? [] : [{ ...turn, items }];
  });
}

function scopeOf(sessionId: string) {
  return { fleet: false, sessionIds: [sessionId], agentIds: [], scope: EVERYTHING };
}

const OF_SESSION = `SELECT
  (SELECT count(*) FROM obligations WHERE session_id = ?1 AND state = 'owed') AS owedCount,
  (SELECT count(*) FROM obligations WHERE session_id = ?1 AND state = 'owed' AND is_overdue) AS overdueCount,
  (SELECT count(*) FROM tasks WHERE session_id = ?1 AND status = 'running') AS runningTaskCount`;
const OF_AGENT = `SELECT
  (SELECT count(*) FROM obligations WHERE state = 'owed') AS owedCount,
  (SELECT count(*) FROM tasks WHERE status = 'running') AS runningTaskCount,
  (SELECT count(*) FROM sessions) AS sessionCount`;

describe('retention', () => {
  it('removes the oldest turns, keeps open work, and live readers see what a reload shows', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 16 }), async (steps) => {
        world = new World(await RetainedServer.start());
        await world.take({ do: 'write', sessionId: 's1', events: message('m1', 'Hello') });
        await world.take({ do: 'join', sessionId: 's1', limit: 200, isLive: true });
        for (const one of steps) {
          await world.take(one);
          await world.check();
          if (one.do !== 'lag') await world.deliver();
        }
        await world.close();
        world = null;
      }),
      { numRuns: 20 },
    );
  });
});
