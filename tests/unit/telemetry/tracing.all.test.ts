import { afterEach, describe, expect, test, vi } from 'vitest';
import { ensureLibsqlServer, startLibsqlServer } from '../../support/libsql-server.mjs';
import { inProcessServer } from '../../support/server-target';
import { WAIT_MS } from '../../support/timeouts';
import { TraceCollector } from '../../support/trace-collector';

const custom = (name: string, value: object) => ({ type: 'CUSTOM', name, value });
const EVENTS = [
  { type: 'RUN_STARTED', threadId: 'work', runId: 'r1' },
  { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"command":"make"}' },
  { type: 'TOOL_CALL_END', toolCallId: 'c1' },
  custom('task:started', { task_id: 't1', tool_use_id: 'c1', description: 'Build', task_type: 'local_bash' }),
  { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', content: 'It runs in the background.' },
  { type: 'RUN_FINISHED', threadId: 'work', runId: 'r1' },
];

afterEach(() => void vi.restoreAllMocks());

describe.skipIf('missing' in ensureLibsqlServer())('a per-request server', () => {
  test('sends a request’s spans before its response', async () => {
    const collector = await TraceCollector.start();
    const libsql = await startLibsqlServer();
    const target = await inProcessServer(libsql.url, {
      INTERLUDE_CONTEXT: 'per-request',
      INTERLUDE_TRACE_AGENTS: '1',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    });
    try {
      const records = EVENTS.map((event, index) => ({
        ...{ kind: 'event', agentId: 'builder', sessionId: 'work', occurredAt: 1_795_170_000_000 + index },
        ...{ seq: index + 1, event },
      }));
      const body = JSON.stringify({ producer: { id: 'builder', epoch: 1 }, records });
      const headers = { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' };
      // The server waits up to a second for the spans, which a busy machine may exceed.
      const { setTimeout: realTimeout } = globalThis;
      vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms?: number) =>
        realTimeout(run, ms === 1_000 ? WAIT_MS : ms)) as typeof setTimeout);
      const response = await target.send('/api/v1/events', { method: 'POST', headers, body });
      const names = collector.spans.map(({ name }) => name);
      expect([response.status, names.sort()]).toEqual([
        200,
        ['POST /api/v1/events', 'commit', 'execute_tool Bash', 'invoke_agent builder'],
      ]);
      expect(collector.faults).toEqual([]);
    } finally {
      await target.close();
      await libsql.stop();
      await collector.close();
    }
  });
});
