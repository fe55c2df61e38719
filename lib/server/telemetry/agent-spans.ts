import type { TurnTrigger } from '@interlude/protocol/ag-ui';
import { inputsOf } from '@interlude/protocol/lifecycle/event-inputs';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import type { Task } from '@interlude/protocol/read-models';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { TASK_ROW, taskFromRow } from '@/db/read-model-rows';
import { columnText } from '@/db/table-rows';
import { derivedIds, type Span, type SpanLink } from './span';
import type { SpanExporter } from './span-exporter';
import type { Ended, Telemetry } from './telemetry';

/**
 * Traces of agents: each turn is a trace with its tool calls; a task is a span in the trace of the turn that started
 * it, even if the task ends later; a turn woken by a task links to that task. Uses OpenTelemetry's GenAI names where
 * they exist. Excludes texts, requests and commands.
 *
 * Ordering: each span is exported once, by the server that received its end.
 * Failure: an unreadable span is dropped and logged once. Nothing waits for spans.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/
 */
export class AgentSpans implements Telemetry {
  readonly #reader: Database['reader'];
  readonly #reads: Database['reads'];
  readonly #exporter: SpanExporter;
  readonly #exporting = new Set<Promise<void>>();
  #isFailing = false;

  constructor({ reader, reads }: Pick<Database, 'reader' | 'reads'>, exporter: SpanExporter) {
    this.#reader = reader;
    this.#reads = reads;
    this.#exporter = exporter;
  }

  ended(all: readonly Ended[]): void {
    const exporting: Promise<void> = this.#export(all).finally(() => this.#exporting.delete(exporting));
    this.#exporting.add(exporting);
  }

  /** Resolves once the exporter has every ended span. */
  async settled(): Promise<void> {
    while (this.#exporting.size > 0) await Promise.all(this.#exporting);
  }

  async #export(all: readonly Ended[]): Promise<void> {
    try {
      for (const one of all) {
        const read = () => (one.kind === 'turn' ? this.#turn(one) : this.#tasks(one));
        this.#exporter.add(...(await this.#reads.run('traces', read)));
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) serverLog('warn', 'Can’t export traces of agents:', { error });
      this.#isFailing = true;
    }
  }

  async #turn({ agentId, sessionId, id: named, occurredAt }: Ended): Promise<Span[]> {
    const id = named ?? (await this.#endedAt(sessionId, occurredAt));
    if (id === null) return [];
    const args = [columnText(sessionId), columnText(id)];
    const [turns, calls] = await this.#reader.batch(
      [
        { sql: TURN, args },
        { sql: CALLS, args },
      ],
      'read',
    );
    const row = turns?.rows[0];
    // the turn had already ended
    if (row === undefined || row.ended_at === null || Number(row.ended_at) !== occurredAt) return [];
    const { traceId, spanId } = turnIds(sessionId, id);
    const about = { 'gen_ai.agent.id': agentId, 'gen_ai.conversation.id': sessionId };
    const trigger = row.trigger === null ? null : (JSON.parse(String(row.trigger)) as TurnTrigger);
    const state = String(row.state);
    const turn: Span = {
      traceId,
      spanId,
      name: `invoke_agent ${agentId}`,
      kind: 'internal',
      startedAt: Number(row.started_at),
      endedAt: occurredAt,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': agentId,
        ...about,
        'interlude.turn.id': id,
        'interlude.turn.kind': String(row.kind),
        'interlude.turn.state': state,
        'interlude.turn.trigger': trigger?.kind ?? null,
      },
      links: trigger === null ? [] : await this.#causes(sessionId, Number(row.position), trigger),
      ...(state === 'failed' ? { error: row.error_code === null ? 'failed' : String(row.error_code) } : {}),
    };
    return [turn, ...callSpans(calls?.rows ?? [], turn, about)];
  }

  /** Id of a recent turn that ended at this time. */
  async #endedAt(sessionId: string, occurredAt: number): Promise<string | null> {
    const { rows } = await this.#reader.execute({
      sql: `SELECT id FROM (SELECT id, ended_at FROM turns WHERE session_id = ? ORDER BY position DESC LIMIT ${RECENT_TURNS})
        WHERE ended_at = ? LIMIT 1`,
      args: [columnText(sessionId), occurredAt],
    });
    return rows[0] === undefined ? null : String(rows[0].id);
  }

  /** Tasks that woke a turn: the last run of each that started before it. */
  async #causes(sessionId: string, before: number, { taskIds, ofSessionIds = [] }: TurnTrigger): Promise<SpanLink[]> {
    const links: SpanLink[] = [];
    for (const [index, id] of taskIds.slice(0, MAX_LINKS).entries()) {
      const owner = ofSessionIds[index] ?? sessionId;
      const { rows } = await this.#reader.execute({
        sql: `SELECT ${TASK_ROW.columns()} FROM tasks WHERE session_id = ? AND id = ? AND position < ?
          ORDER BY position DESC LIMIT 1`,
        args: [columnText(owner), columnText(id), before],
      });
      if (rows[0] === undefined) continue;
      const { traceId, spanId } = taskIdsOf(taskFromRow(rows[0]));
      links.push({ traceId, spanId, attributes: { 'interlude.link': 'caused-by', 'interlude.task.id': id } });
    }
    return links;
  }

  /** Task runs that ended at this time, in any session of the agent. */
  async #tasks({ agentId, id, occurredAt }: Ended): Promise<Span[]> {
    if (id === null) return [];
    const { rows } = await this.#reader.execute({
      sql: `SELECT ${TASK_ROW.columns()} FROM tasks WHERE agent_id = ? AND id = ? AND ended_at = ? AND status <> 'running'`,
      args: [columnText(agentId), columnText(id), occurredAt],
    });
    return rows.map((row) => taskSpan(taskFromRow(row)));
  }
}

const MAX_CALLS = 1_000;
const MAX_LINKS = 100;
/** Number of recent turns to search for the one that just ended. */
const RECENT_TURNS = 20;

const TURN =
  'SELECT position, kind, state, "trigger", started_at, ended_at, error_code FROM turns WHERE session_id = ? AND id = ?';
const CALLS = `SELECT type, entity_id, occurred_at, payload->>'$.toolCallName' AS name,
    coalesce(payload->>'$.isError', payload->>'$.error' IS NOT NULL) AS failed
  FROM events WHERE session_id = ? AND turn_id = ? AND type IN ('TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_CALL_RESULT')
  ORDER BY position LIMIT ${3 * MAX_CALLS}`;

function turnIds(sessionId: string, turnId: string) {
  return derivedIds('turn', sessionId, turnId);
}

/** Shares the trace of the turn that started the task, if any. */
function taskIdsOf({ sessionId, id, position, startedInTurnId }: Task) {
  const own = derivedIds('task', sessionId, id, position);
  return startedInTurnId === null ? own : { ...own, traceId: turnIds(sessionId, startedInTurnId).traceId };
}

function callSpanId(turnTraceId: string, callId: string): string {
  return derivedIds('call', turnTraceId, callId).spanId;
}

function callSpans(rows: readonly Row[], turn: Span, about: Span['attributes']): Span[] {
  const calls = new Entities<'call', Span>('call', { mostOpen: MAX_CALLS, mostEnded: 3 * MAX_CALLS });
  const spans: Span[] = [];
  for (const { type, entity_id, occurred_at, name, failed } of rows) {
    const id = String(entity_id);
    for (const { kind, input } of inputsOf({ type: String(type), toolCallId: id })) {
      if (kind !== 'call') continue;
      const span = calls.about(id) ?? callSpan(id, name, Number(occurred_at), turn, about);
      const verdict = calls.take(id, input, span);
      if (verdict === 'begins') spans.push(span);
      if (verdict !== 'ends' && verdict !== 'continues') continue;
      span.endedAt = Number(occurred_at);
      if (input === 'result' && Number(failed) === 1) span.error = 'tool_error';
    }
  }
  return spans.slice(0, MAX_CALLS);
}

function callSpan(id: string, name: unknown, startedAt: number, turn: Span, about: Span['attributes']): Span {
  return {
    traceId: turn.traceId,
    spanId: callSpanId(turn.traceId, id),
    parentSpanId: turn.spanId,
    name: `execute_tool ${name ?? 'unknown'}`,
    kind: 'internal',
    startedAt,
    // an unfinished call ends with its turn
    endedAt: turn.endedAt,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name === null ? null : String(name),
      'gen_ai.tool.call.id': id,
      ...about,
    },
  };
}

function taskSpan(task: Task): Span {
  const { sessionId, agentId, id, runId, kind, status, exitCode, toolCallId, startedInTurnId, usage } = task;
  const ids = taskIdsOf(task);
  const turn = startedInTurnId === null ? null : turnIds(sessionId, startedInTurnId);
  const parent = turn === null ? null : toolCallId === null ? turn.spanId : callSpanId(turn.traceId, toolCallId);
  return {
    ...ids,
    ...(parent === null ? {} : { parentSpanId: parent }),
    name: `task ${kind}`,
    kind: 'internal',
    startedAt: task.startedAt,
    endedAt: task.endedAt ?? task.startedAt,
    attributes: {
      'gen_ai.agent.id': agentId,
      'gen_ai.conversation.id': sessionId,
      'interlude.task.id': id,
      'interlude.task.run_id': runId,
      'interlude.task.kind': kind,
      'interlude.task.status': status,
      'interlude.task.tokens': usage?.totalTokens ?? null,
      'process.exit.code': exitCode,
    },
    ...(status === 'failed' || status === 'lost' ? { error: status } : {}),
  };
}
