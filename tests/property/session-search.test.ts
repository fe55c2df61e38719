import { newSession } from '@interlude/protocol/projections/session-summary';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { listedStateOf } from '@interlude/protocol/session-predicates';
import { LISTED_STATES, SESSION_STATES } from '@interlude/protocol/session-states';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sessionToRow } from '@/db/read-model-rows';
import { sessions } from '@/db/schema';
import { RowWriter } from '@/db/table-rows';
import { unscoped } from '@/lib/server/access/request-context';
import { groupsOf, readSessionPage, type SessionFilter } from '@/lib/server/queries/read-sessions';
import { cursorOf } from '@/lib/server/queries/search-pages';
import { type TestDatabase, temporaryDatabase } from '../support/database';

const WRITER = new RowWriter(sessions, { key: ['id'], keeps: ['agentId'], lacks: ['number'] });
const REST = {
  places: { turns: [], places: [] } as never,
  memory: {},
  hasEnded: false,
  isAway: false,
  awayPosition: null,
  givesUpAt: null,
  seenAt: null,
  seenPosition: 0,
  removedUpTo: 0,
};

let database: TestDatabase;
beforeAll(async () => {
  database = await temporaryDatabase();
});
afterAll(() => database.close());

/**
 * Few words, so that some rows match several and some none: short words, SQL and full-text metacharacters, non-ASCII.
 */
const WORDS = [
  'needle',
  'NEEDLES',
  'ok',
  'a',
  '"quoted"',
  '100%',
  'it’s',
  'naïve',
  'İstanbul',
  '🧵 thread',
  'AND',
  'x*',
];
const words = fc.array(fc.constantFrom(...WORDS), { maxLength: 3 }).map((some) => some.join(' '));
const change = fc.record({
  session: fc.nat(11),
  agent: fc.nat(2),
  state: fc.constantFrom(...SESSION_STATES),
  title: fc.option(words),
  stateReason: fc.option(words),
  lastText: fc.option(words),
  at: fc.nat(5),
  /** Last active state of an unknown session, and exit code of an exited one. */
  last: fc.constantFrom('working' as const, 'idle' as const, undefined),
  code: fc.constantFrom(0, 1, null),
});
const query = fc.record({
  states: fc.uniqueArray(fc.constantFrom(...SESSION_STATES), { maxLength: 3 }),
  listed: fc.uniqueArray(fc.constantFrom(...LISTED_STATES), { maxLength: 3 }),
  agentId: fc.option(fc.nat(2).map((agent) => `Agent-${agent}`)),
  words: fc
    .array(fc.oneof(fc.constantFrom(...WORDS, 'agent-1', 'gent-', 'eed', 'nothing'), fc.string({ minLength: 1 })), {
      maxLength: 2,
    })
    .map((some) => some.flatMap((one) => one.toLowerCase().split(/\s+/).filter(Boolean))),
});

it('a paged search equals a scan of all sessions after any changes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { maxLength: 40 }),
      fc.array(query, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 5 }),
      async (changes, filters, limit) => {
        const rows = new Map<string, SessionSummary>();
        await database.writes.run(async (transaction) => {
          await transaction.execute('DELETE FROM sessions');
          for (const { session, agent, at, last, code, ...fields } of changes) {
            const id = `session ${session}`;
            const agentId = rows.get(id)?.agentId ?? `Agent-${agent}`;
            const { summary: fresh } = newSession(id, agentId, at);
            const evidence = last === undefined ? fresh.evidence : { ...fresh.evidence, last };
            const process = { observedAt: 1, turnId: null, value: { code, signal: null, reason: null } };
            const observations = { ...fresh.observations, ...(fields.state === 'exited' && { process }) };
            const summary = { ...fresh, ...fields, evidence, observations };
            rows.set(id, summary);
            await transaction.execute(WRITER.one({ ...sessionToRow(summary), ...REST }));
          }
        });
        for (const filter of filters) {
          const matching = [...rows.values()].filter((row) => passes(row, filter));
          const expected = matching.filter(({ state }) => filter.states.length === 0 || filter.states.includes(state));
          const { found, counts } = await paged(filter, limit);
          expect(found).toEqual(expected.sort(inListOrder(filter)).map(({ id }) => id));
          for (const state of SESSION_STATES) {
            expect(counts[state]).toBe(matching.filter((row) => row.state === state).length);
          }
        }
      },
    ),
    { numRuns: 60 },
  );
});

function passes(row: SessionSummary, { agentId, listed, words }: SessionFilter): boolean {
  const text = [row.arrangement.name, row.title, row.stateReason, row.lastText, row.id, row.agentId]
    .filter((one) => one !== null)
    .join('\n');
  const isListed = listed.length === 0 || listed.includes(listedStateOf(row));
  return (
    isListed &&
    (agentId === null || row.agentId === agentId) &&
    words.every((word) => text.toLowerCase().includes(word))
  );
}

const inListOrder = (filter: SessionFilter) => (a: SessionSummary, b: SessionSummary) => {
  const rank = (row: SessionSummary) =>
    groupsOf(filter).indexOf(filter.listed.length > 0 ? listedStateOf(row) : row.state);
  return rank(a) - rank(b) || b.lastEventAt - a.lastEventAt || (a.id < b.id ? 1 : -1);
};

async function paged(filter: SessionFilter, limit: number) {
  const found: string[] = [];
  for (let after = '0'; ; ) {
    const page = await readSessionPage(unscoped(database), { after: cursorOf(after, groupsOf(filter)), limit }, filter);
    expect(page.sessions.length).toBeLessThanOrEqual(limit);
    found.push(...page.sessions.map(({ id }) => id));
    if (page.next === null) return { found, counts: page.counts };
    after = page.next;
  }
}
