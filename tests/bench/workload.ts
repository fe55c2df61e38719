import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { LogLevel } from '@interlude/protocol/vocabulary';
import type { EventWriter } from '../support/event-writer';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn, wokenTurn } from '../support/turn-events';

export interface WorkRecord {
  seq: number;
  kind: 'event';
  agentId: string;
  sessionId: string;
  occurredAt: number;
  event: AgUiEvent;
}

const WORDS = 'the tests pass now but the deploy still waits for its canary to settle before it goes on '.split(' ');

/**
 * A busy runner's records: sessions with reasoning, streamed text, tool calls with streamed arguments and background
 * tasks, realistically interleaved. Deterministic.
 */
export function* workload(agentId: string, sessionCount: number): Generator<WorkRecord> {
  const sessions = Array.from({ length: sessionCount }, (_, index) => sessionEvents(`${agentId}-s${index}`, index));
  for (let seq = 1; ; ) {
    for (const [index, session] of sessions.entries()) {
      // a few events per session, round-robin
      for (let burst = 0; burst < 3 + (index % 4); burst += 1) {
        const event = session.next().value;
        const occurredAt = 1_795_170_000_000 + seq * 7;
        yield { seq, kind: 'event', agentId, sessionId: `${agentId}-s${index}`, occurredAt, event };
        seq += 1;
      }
    }
  }
}

function* sessionEvents(threadId: string, offset: number): Generator<AgUiEvent, never> {
  for (let turn = offset; ; turn += 1) {
    const runId = `${threadId}-r${turn}`;
    const userId = `${runId}-u`;
    const interlude = { turn: 'user' as const, userMessageIds: [userId] };
    yield { type: 'TEXT_MESSAGE_START', messageId: userId, role: 'user' };
    yield { type: 'TEXT_MESSAGE_CONTENT', messageId: userId, delta: text(40, turn) };
    yield { type: 'TEXT_MESSAGE_END', messageId: userId };
    yield { type: 'RUN_STARTED', threadId, runId, metadata: { interlude } };
    yield* stream('REASONING_MESSAGE', 'messageId', `${runId}/think`, 12, turn);
    for (let call = 0; call < 3; call += 1) {
      const id = `${runId}/tool${call}`;
      yield* stream('TOOL_CALL', 'toolCallId', id, 6, turn + call, { toolCallName: 'Bash' });
      yield { type: 'TOOL_CALL_RESULT', messageId: `${id}-r`, toolCallId: id, content: text(60, call) };
      if (call === 1) yield task('task:started', `${runId}-t`, { description: text(5, turn), task_type: 'local_bash' });
      yield* stream('TEXT_MESSAGE', 'messageId', `${runId}/text${call}`, 24, turn, { role: 'assistant' });
    }
    yield { type: 'RUN_FINISHED', threadId, runId, metadata: { interlude } };
    yield task('task:completed', `${runId}-t`, { status: 'completed', exit_code: 0, summary: text(8, turn) });
    const trigger = { kind: 'task' as const, taskIds: [`${runId}-t`] };
    const woken = { interlude: { turn: 'between-run' as const, trigger } };
    yield { type: 'RUN_STARTED', threadId, runId: `${runId}-w`, metadata: woken };
    yield* stream('TEXT_MESSAGE', 'messageId', `${runId}-w/text`, 16, turn, { role: 'assistant' });
    yield { type: 'RUN_FINISHED', threadId, runId: `${runId}-w`, metadata: woken };
  }
}

function* stream(
  type: string,
  idField: string,
  id: string,
  deltas: number,
  salt: number,
  start: Record<string, unknown> = {},
): Generator<AgUiEvent> {
  yield { type: `${type}_START`, [idField]: id, ...start };
  const content = type === 'TOOL_CALL' ? 'TOOL_CALL_ARGS' : `${type}_CONTENT`;
  for (let index = 0; index < deltas; index += 1) yield { type: content, [idField]: id, delta: text(3, salt + index) };
  yield { type: `${type}_END`, [idField]: id };
}

function task(name: string, taskId: string, fields: Record<string, unknown>): AgUiEvent {
  return { type: 'CUSTOM', name, value: { task_id: taskId, ...fields } };
}

function text(words: number, salt: number): string {
  return Array.from({ length: words }, (_, index) => WORDS[(salt * 7 + index * 3) % WORDS.length]).join(' ');
}

interface WorkLine {
  level: LogLevel;
  component: string;
  message: string;
}

const LEVELS: readonly LogLevel[] = ['debug', 'debug', 'debug', 'info', 'info', 'info', 'info', 'warn'];

/** A busy runner's log lines with varying ids, numbers, paths and JSON. Deterministic. */
export function workLine(n: number): WorkLine {
  const random = mixed(n);
  const id = `${hex(random, 8)}-${hex(mixed(random), 4)}-${hex(mixed(random + 7), 4)}`;
  const other = mixed(random + 11);
  const level = other % 1000 === 7 ? 'error' : (LEVELS[other % LEVELS.length] ?? 'info');
  if (n % 100_000 === 33_333) {
    return { level: 'fatal', component: 'hook', message: `hook PostToolUse died: zeppelin-${n} ENOSPC no space left` };
  }
  switch (random % 8) {
    case 0:
      return {
        level,
        component: 'outbox',
        message: `sent batch of ${random % 500} records, acked seq ${n} in ${random % 90}.${random % 10} ms`,
      };
    case 1:
      return { level, component: 'hook', message: `PostToolUse finished for session ${id} exit 0` };
    case 2:
      return {
        level,
        component: 'claude',
        message: `tool call toolu_${hex(random, 8)}${hex(mixed(n + 3), 8)} Bash started in /home/dev/project/src/server.ts`,
      };
    case 3:
      return {
        level,
        component: 'task',
        message: `task ${hex(random, 8)} still running, output file grew to ${random % 10_000_000} bytes`,
      };
    case 4:
      return {
        level,
        component: 'http',
        message: JSON.stringify({
          event: 'request',
          path: `/api/v1/sessions/${id}`,
          status: [200, 204, 404, 500][other % 4],
          durationMs: random % 1000,
        }),
      };
    case 5:
      return {
        level,
        component: 'http',
        message: `connection to 127.0.0.1:${1024 + (random % 60_000)} closed after ${random % 300} s: ECONNRESET`,
      };
    case 6:
      return {
        level,
        component: 'outbox',
        message: `retry ${random % 9} of POST /events in ${random % 30_000} ms: 503 unavailable`,
      };
    default:
      return {
        level,
        component: 'mirror',
        message: `snapshot of obligations written, ${random % 20} owed, revision ${n}`,
      };
  }
}

function mixed(n: number): number {
  let x = (n + 0x9e3779b9) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad) >>> 0;
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97) >>> 0;
  return (x ^ (x >>> 15)) >>> 0;
}

function hex(n: number, digits: number): string {
  return n.toString(16).padStart(8, '0').slice(0, digits);
}

/** The baseline for ingest: the same rows in one statement from prepared JSON. */
export const BARE_INSERT = `INSERT INTO events
    (position, session_id, agent_id, producer_id, epoch, seq, occurred_at, received_at, type, entity_id, turn_id, payload)
  SELECT value->>'position', value->>'sessionId', value->>'agentId', value->>'producerId', value->>'epoch',
    value->>'seq', value->>'occurredAt', value->>'receivedAt', value->>'type', value->>'entityId', value->>'turnId',
    value->'payload'
  FROM json_each(?)`;

/** Builds the rows with ascending positions. */
export class BareRows {
  #position = 0;

  /** @returns the statement's argument */
  json(records: readonly WorkRecord[]): string {
    return JSON.stringify(records.map((record) => this.#row(record)));
  }

  #row({ seq, agentId, sessionId, occurredAt, event }: WorkRecord) {
    this.#position += 1;
    return {
      position: this.#position,
      sessionId,
      agentId,
      producerId: agentId,
      epoch: 1,
      seq,
      occurredAt,
      receivedAt: occurredAt,
      type: event.type,
      entityId: event.messageId ?? event.toolCallId ?? null,
      turnId: `${sessionId}-r0`,
      payload: event,
    };
  }
}

/**
 * A very long session: turns with a question, reasoning, calls with output and a markdown answer. Every tenth starts a
 * task whose end wakes the agent. Deterministic.
 *
 * @param prefix of all ids
 */
export function* longSession(turns: number, prefix = ''): Generator<AgUiEvent> {
  for (let turn = 0; turn < turns; turn += 1) {
    const id = `${prefix}turn${turn}`;
    if (turn % 10 === 9) {
      yield taskEnded(`${id}/task`, turn % 20 === 9 ? 'failed' : 'completed', { exit_code: turn % 20 === 9 ? 1 : 0 });
      yield* wokenTurn(id, `${id}/task`, answer(turn));
      continue;
    }
    const work = [
      ...reasoning(`${id}/thought`, ANSWER_WORDS.slice(0, 20 + (turn % 30)).join(' ')),
      ...Array.from({ length: turn % 4 }, (_, index) =>
        toolCall(`${id}/call${index}`, 'Bash', { command: `npm test -- part-${index}` }, OUTPUT),
      ).flat(),
      ...(turn % 10 === 8 ? [taskStarted(`${prefix}turn${turn + 1}/task`, `Run suite ${turn}`)] : []),
      ...message(`${id}/answer`, answer(turn)),
    ];
    yield* userTurn(id, `Question ${turn}: what about the rollout?`, work);
  }
}

const ANSWER_WORDS =
  'the tests pass now but the deploy still waits for its canary to settle before it goes on with the rest '
    .repeat(4)
    .split(' ');
const OUTPUT = Array.from({ length: 30 }, (_, index) => `\u001b[32mok\u001b[0m ${index} - part of the suite`).join(
  '\n',
);

function answer(turn: number): string {
  const words = ANSWER_WORDS.slice(0, 15 + ((turn * 7) % 60)).join(' ');
  if (turn % 7 === 3) return `${words}\n\n\`\`\`ts\nexport const turn = ${turn};\nconst rest = turn * 2;\n\`\`\`\n`;
  if (turn % 5 === 2) return `**Answer ${turn}.** ${words}\n\n- first\n- \`second\`\n- [third](https://example.org)\n`;
  return `Answer ${turn}. ${words}`;
}

/** An agent with sessions that change. */
export interface ChangingAgent {
  writer: EventWriter;
  sessionIds: readonly string[];
}

/**
 * Starts and ends turns and requests in sessions of all agents in turn.
 *
 * @param agents a multiple of four
 * @returns changes per second
 */
export async function changeSessions(agents: readonly ChangingAgent[], perSecond: number, ms: number): Promise<number> {
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  let sent = 0;
  // Each writer belongs to one worker.
  const worker = async (first: number) => {
    for (let index = first; elapsed() < ms; index += 4) {
      if (sent > (elapsed() * perSecond) / 1_000) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        index -= 4;
        continue;
      }
      sent += 4;
      const { writer, sessionIds } = agents[index % agents.length] as ChangingAgent;
      const sessionId = sessionIds[Math.floor(index / agents.length) % sessionIds.length] ?? '';
      const runId = `later-${index}`;
      const ask = {
        request_id: runId,
        kind: 'permission',
        tool_name: 'Bash',
        title: `Later ${index}`,
        input: { command: 'ls' },
      };
      await writer.write(sessionId, [
        { type: 'RUN_STARTED', threadId: 's', runId },
        { type: 'CUSTOM', name: 'request:opened', value: ask },
      ]);
      await writer.write(sessionId, [
        { type: 'CUSTOM', name: 'request:resolved', value: { request_id: runId, outcome: 'allowed' } },
        { type: 'RUN_FINISHED', threadId: 's', runId },
      ]);
    }
  };
  await Promise.all([0, 1, 2, 3].map(worker));
  return (sent * 1_000) / elapsed();
}
