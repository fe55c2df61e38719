import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Command } from '@interlude/protocol/commands';
import { MAX_EVERY_MS } from '@interlude/protocol/limits';
import type { SessionState } from '@interlude/protocol/session-states';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import { longSession } from '../bench/workload';
import { EventWriter, turnFailed, turnStarted } from './event-writer';
import { LogWriter } from './log-writer';
import { type Random, randomFrom } from './random';
import { taskEnded, taskStarted, toolCall, userTurn } from './turn-events';
import { answer, requestOpened, requestResolved, turnOf, WireRunner } from './wire-runner';

type Server = { url: string; token: string };

export interface FleetAgent {
  id: string;
  writer: EventWriter;
  /** The first is the current one. */
  sessions: { id: string; state: SessionState }[];
}

const HOUR_MS = 3_600_000;
const REPOSITORIES = ['billing-api', 'checkout-web', 'search-indexer', 'ios-app', 'data-pipeline', 'auth-service'];
const KINDS = ['claude', 'codex', 'opencode', 'acp'];
const TAKES = ['message', 'interrupt', 'task.stop', 'permission.decision', 'question.answer', 'session.end'];
const ASKS = [
  'The nightly export of invoices fails for tenants with more than 10,000 rows. Find out why and fix it.',
  'Upgrade React and get the test suite green again.',
  'Why is the p99 of /search up by 40 % since Tuesday? Look at the traces first, then at the query plans.',
  'Make the test “applies a coupon twice” deterministic, without sleeping.',
  'Find every place where we log an email address, and redact it.',
];
const REPLIES = [
  'I’ll start with the log of the failing job, then look at how the rows are read.',
  'The worker reads **every row at once**:\n\n```ts\nconst rows = await db.select().from(invoices);\n```\n\n1. page by cursor\n2. keep the order stable',
  '| query | before | after |\n|---|---:|---:|\n| `SELECT … FROM invoices` | 1,840 ms | 12 ms |',
  'All 412 tests pass. Nothing imports `src/legacy/export.ts` any more, so it can go in its own pull request.',
  '> waits for a network idle that never comes\n\nReplaced by an assertion on the row. Ran it 200 times: **200 passed**.',
];

const QUESTION = {
  ...{ question: 'Which database should the backfill run against?', header: 'Database', multiSelect: false },
  options: [
    { label: 'Staging', description: 'few rows' },
    { label: 'Replica', description: 'real sizes, read only' },
  ],
};

const asks = (id: string, kind: string, tool_name: string, title: string, input: object) =>
  requestOpened({ request_id: `${id}-asks`, kind, tool_name, title, input });
const ended = (exitCode: number): AgUiEvent => ({ type: 'CUSTOM', name: 'session:ended', value: { exitCode } });

type Ending = readonly [SessionState, (id: string) => AgUiEvent[]];

/** Ends of current sessions, in turn. */
const CURRENT: readonly Ending[] = [
  ['needs-input', (id) => [turnStarted(id), asks(id, 'permission', 'Bash', 'Clean', { command: 'rm -rf build' })]],
  ['needs-input', (id) => [turnStarted(id), asks(id, 'question', 'Ask', 'Which database?', { questions: [QUESTION] })]],
  ['failed', (id) => turnFailed(id, 'API Error: 401 invalid x-api-key')],
  ['waiting-on-background', (id) => userTurn(id, 'Deploy', [taskStarted(`${id}-task`, 'kubectl rollout status')])],
  ['working', (id) => [turnStarted(id), ...toolCall(`${id}-call`, 'Bash', { command: 'npm test' }, '').slice(0, -1)]],
  ['idle', (id) => userTurn(id, 'Commit it', 'Committed.')],
];
const DONE: Ending = ['exited', (id) => [...userTurn(id, 'Commit it', 'Committed.'), ended(0)]];
/** Ends of earlier sessions, in turn. */
const EARLIER: readonly Ending[] = [
  ...[DONE, DONE, DONE, DONE],
  ['exited', () => [ended(137)]],
  ['idle', (id) => userTurn(id, 'Thanks', 'You’re welcome.')],
  ['failed', (id) => turnFailed(id, 'API Error: 529 overloaded_error')],
];

/**
 * Writes the fleet of a busy day: agents with logs, and sessions with turns, tool calls, tasks, requests and failures.
 * Deterministic but for the time.
 */
export async function writeFleet(server: Server, { agents = 40, sessions = 300, longest = 5_000 } = {}) {
  const random = randomFrom(7);
  const fleet = Array.from({ length: agents }, (_, index): FleetAgent => {
    const id = `${KINDS[index % KINDS.length]}-${REPOSITORIES[index % REPOSITORIES.length]}-${index + 1}`;
    return { id, writer: new EventWriter(server, id, Date.now()), sessions: [] };
  });
  for (const { id, writer } of fleet) await report({ id, writer });
  for (let index = sessions - 1; index >= 0; index -= 1) {
    const agent = fleet[index % agents] as FleetAgent;
    const id = `${agent.id}-s${index}`;
    const age = Math.floor(index / agents);
    const kinds = age === 0 ? CURRENT : EARLIER;
    const [state, events] = kinds[(index + age) % kinds.length] as Ending;
    const at = Date.now() - age * 12 * HOUR_MS;
    const begin = userTurn(id, random.pick(ASKS), random.pick(REPLIES));
    const turns = [...begin, ...longSession(age === 0 ? 20 : 4, `${id}-`)];
    await agent.writer.write(id, turns, { at: at - 60_000, stepMs: 4_000 });
    await agent.writer.write(id, events(`${id}-last`), { at, stepMs: 1_000 });
    agent.sessions.unshift({ id, state });
  }
  for (const { id } of fleet) await new LogWriter(server, id, `${id}-log`).write(log(random));
  if (longest > 0) {
    const agent = fleet.at(-1) as FleetAgent;
    const id = `${agent.id}-longest`;
    await agent.writer.write(id, [...longSession(longest)], { at: Date.now() - HOUR_MS, stepMs: 1_000 });
    agent.sessions.push({ id, state: 'idle' });
  }
  return fleet;
}

/** Sends an agent's status, which holds for ten minutes. */
function report({ id, writer }: Pick<FleetAgent, 'id' | 'writer'>): Promise<void> {
  const [kind, ...repository] = id.split('-');
  const place = { host: 'build-1', cwd: `/home/agent/${repository.slice(0, -1).join('-')}` };
  return writer.status(undefined, { ...{ kind, source: 'sdk', ...place }, takes: TAKES, everyMs: MAX_EVERY_MS });
}

/** Connects a runner for each agent that answers every command. @returns disconnects them */
export async function connectFleet(server: Server, fleet: readonly FleetAgent[]): Promise<() => void> {
  const runners = await Promise.all(
    fleet.map(({ id, writer }) =>
      WireRunner.connect(server, id, (command, runner) => void obey(writer, runner, command)),
    ),
  );
  const reports = setInterval(() => fleet.forEach(report), MAX_EVERY_MS / 2);
  return () => {
    clearInterval(reports);
    for (const runner of runners) runner.leave();
  };
}

async function obey(writer: EventWriter, runner: WireRunner, command: Command): Promise<void> {
  await runner.acknowledge(command, command.type === 'message' ? 'delivered' : 'done');
  if (command.sessionId !== null) await writer.write(command.sessionId, effectOf(command));
}

function effectOf(command: Command): AgUiEvent[] {
  const { id } = command;
  switch (command.type) {
    case 'message': {
      const to = [command.body.messageId];
      return [turnOf('RUN_STARTED', id, to), ...answer(`${id}-reply`, 'Done.', to), turnOf('RUN_FINISHED', id, to)];
    }
    case 'interrupt':
      return [{ type: 'RUN_ERROR', message: 'Interrupted', code: 'interrupted' }];
    case 'permission.decision':
      return [requestResolved(command.body.requestId, command.body.behavior === 'allow' ? 'allowed' : 'denied')];
    case 'question.answer':
      return [requestResolved(command.body.requestId, 'answered')];
    case 'task.stop':
      return [taskEnded(command.body.taskId, 'stopped')];
    case 'session.end':
      return [ended(0)];
    default:
      return [];
  }
}

function log(random: Random) {
  const levels: LogLevel[] = ['info', 'info', 'info', 'debug', 'warn', 'error'];
  return Array.from({ length: 60 }, (_, index) => ({
    level: random.pick(levels),
    component: random.pick(['outbox', 'adapter', 'hook:Stop']),
    message: random.pick(['connect ECONNREFUSED 10.0.3.7:5432', 'posted 14 records', 'heartbeat']),
    occurredAt: Date.now() - (60 - index) * 60_000,
  }));
}
