import { listedScope, reachesAgent, reachesLog, reachesSession, type Scope, scopeKey } from '@interlude/protocol/scope';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentsIn, listedSessionsIn, logsIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import { type TestDatabase, temporaryDatabase } from '../support/database';

let database: TestDatabase;
beforeAll(async () => {
  database = await temporaryDatabase();
});
afterAll(() => database.dispose());

/** SQL and LIKE metacharacters, non-ASCII characters, lone surrogates, and prefixes of each other. */
const PARTS = [
  "'",
  "''",
  '"',
  '%',
  '_',
  '\\',
  '?',
  '?1',
  ':a',
  '--',
  ';',
  '/*',
  ' ',
  '\n',
  'a',
  'A',
  'ab',
  'é',
  'e\u0301',
  'ß',
  'İ',
  '\u{1F9F5}',
  '\u{1F9F6}',
  '\uFFFD',
  'NULL',
  'agent-1',
  'agent-10',
];
const id = fc
  .array(fc.oneof(fc.constantFrom(...PARTS), fc.string({ unit: 'binary', minLength: 1, maxLength: 4 })), {
    minLength: 1,
    maxLength: 3,
  })
  .map((parts) => parts.join('').replaceAll('\0', '0'));

/** Ids as stored in columns, as in a scope. */
const kept = id.map(columnText);
const scopeOf = (known: string[]): fc.Arbitrary<Scope> => {
  const one = fc.constantFrom(...known);
  const cut = fc.tuple(one, fc.nat(6)).map(([text, length]) => [...text].slice(0, length).join('') || text);
  const whole = fc.oneof(
    fc.constant<Scope>({ kind: 'everything' }),
    fc.record({
      kind: fc.constant('agents' as const),
      ids: fc.array(one, { maxLength: 2 }),
      prefixes: fc.array(fc.oneof(one, cut), { maxLength: 2 }),
    }),
  );
  return fc.oneof(
    whole,
    fc.record({ kind: fc.constant('fleet' as const), within: whole }),
    fc.record({ kind: fc.constant('session' as const), sessionId: one }),
    fc.record({ kind: fc.constant('log' as const), agentId: one }),
  );
};

const worlds = fc
  .array(kept, { minLength: 1, maxLength: 8 })
  .chain((ids) =>
    fc.tuple(fc.constant(ids), scopeOf(ids), fc.array(fc.option(fc.constantFrom(...ids)), { maxLength: 8 })),
  );

it('SQL and JavaScript agree on a scope’s content for any ids', async () => {
  await fc.assert(
    fc.asyncProperty(worlds, async ([agentIds, scope, sessionIds]) => {
      const rows = agentIds.map((agentId, index) => ({ agentId, sessionId: sessionIds[index] ?? null }));
      const conditions = [
        agentsIn(scope),
        sessionsIn(scope, 'session_id'),
        listedSessionsIn(scope, 'session_id'),
        logsIn(scope),
      ];
      const { rows: found } = await database.reader.execute({
        sql: `SELECT ${conditions.map((sql, index) => `ifnull(${sql}, 0) AS c${index}`).join(', ')}
          FROM (SELECT value->>'$.agentId' AS agent_id, value->>'$.sessionId' AS session_id FROM json_each(?))`,
        args: [JSON.stringify(rows)],
      });
      const inSql = found.map(({ c0, c1, c2, c3 }) => [c0, c1, c2, c3].map(Boolean));
      const inScript = rows.map((row) => [
        reachesAgent(scope, row.agentId),
        reachesSession(scope, row),
        reachesSession(listedScope(scope), row),
        reachesLog(scope, row.agentId),
      ]);
      expect(inSql).toEqual(inScript);
    }),
    { numRuns: 1_000 },
  );
});

it('scope keys differ exactly when scopes differ, in any order of ids', () => {
  const ids = [[], ['a'], ['b'], ['a', 'b'], ['a,b'], ['a","b']];
  const agents = ids.flatMap((one) => ids.map((prefixes): Scope => ({ kind: 'agents', ids: one, prefixes })));
  const others: Scope[] = [
    { kind: 'everything' },
    ...['a', 'b'].flatMap((one): Scope[] => [
      { kind: 'session', sessionId: one },
      { kind: 'log', agentId: one },
    ]),
  ];
  const lists = [...agents, { kind: 'everything' } as const].map((within): Scope => ({ kind: 'fleet', within }));
  const all = [...agents, ...others, ...lists];
  expect(new Set(all.map(scopeKey)).size).toBe(all.length);
  const there: Scope = { kind: 'agents', ids: ['a', 'b'], prefixes: ['c', 'd'] };
  expect(scopeKey({ kind: 'agents', ids: ['b', 'a'], prefixes: ['d', 'c'] })).toBe(scopeKey(there));
});
