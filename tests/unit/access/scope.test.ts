import { EVERYTHING, reachesAgent, reachesLog, reachesSession, type Scope } from '@interlude/protocol/scope';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { agentsIn, logsIn, sessionsIn } from '@/db/scope-sql';
import { type TestDatabase, temporaryDatabase } from '../../support/database';

/** Sessions by agent. Some ids share prefixes, others are hostile to SQL. */
const AGENTS: Record<string, string[]> = {
  a1: ['s1', 's11'],
  a10: ['s2'],
  'team/a1': ['s3'],
  'team%a1': ['s4'],
  "o'neill": ["s'5"],
};

interface Reach {
  agents: string[];
  sessions: string[];
  logs: string[];
}

const all = Object.keys(AGENTS);
const of = (agents: string[]): Reach => ({ agents, sessions: agents.flatMap((id) => AGENTS[id] ?? []), logs: agents });
const agents = (ids: string[], prefixes: string[] = []): Scope => ({ kind: 'agents', ids, prefixes });

const SCOPES: [string, Scope, Reach][] = [
  ['everything', EVERYTHING, of(all)],
  ['one agent, and none whose id begins like it', agents(['a1']), of(['a1'])],
  ['all agents with a prefix', agents([], ['a1']), of(['a1', 'a10'])],
  ['a prefix with a sign of LIKE literally', agents([], ['team%']), of(['team%a1'])],
  ['an agent with a quote in its id', agents(["o'neill"]), of(["o'neill"])],
  ['no agent', agents([]), of([])],
  ['one session', { kind: 'session', sessionId: 's1' }, { agents: [], sessions: ['s1'], logs: [] }],
  ['one log', { kind: 'log', agentId: 'a1' }, { agents: [], sessions: [], logs: ['a1'] }],
];

let database: TestDatabase;
beforeAll(async () => {
  database = await temporaryDatabase();
});
afterAll(() => database.dispose());

describe.each(SCOPES)('a scope of %s', (_, scope, reach) => {
  test('reaches the agents and sessions that it names', () => {
    const sessions = all.flatMap((agentId) => (AGENTS[agentId] ?? []).map((sessionId) => ({ agentId, sessionId })));
    expect(all.filter((id) => reachesAgent(scope, id))).toEqual(reach.agents);
    expect(sessions.filter((one) => reachesSession(scope, one)).map(({ sessionId }) => sessionId)).toEqual(
      reach.sessions,
    );
    expect(all.filter((id) => reachesLog(scope, id))).toEqual(reach.logs);
  });

  test('reaches the same rows in SQL', async () => {
    const rows = all.flatMap((agentId) => (AGENTS[agentId] ?? []).map((sessionId) => [agentId, sessionId]));
    const read = async (column: number, condition: string) => {
      const found = await database.reader.execute({
        sql: `SELECT DISTINCT id FROM (SELECT key, value->>0 AS agent_id, value->>1 AS session_id, value->>${column} AS id
          FROM json_each(?)) WHERE ${condition} ORDER BY key`,
        args: [JSON.stringify(rows)],
      });
      return found.rows.map(({ id }) => id);
    };
    expect(await read(0, agentsIn(scope))).toEqual(reach.agents);
    expect(await read(1, sessionsIn(scope, 'session_id'))).toEqual(reach.sessions);
    expect(await read(0, logsIn(scope))).toEqual(reach.logs);
  });
});
