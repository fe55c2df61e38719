import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { otelSettings } from '@/lib/server/telemetry/otel-settings';
import { derivedIds, traceContext } from '@/lib/server/telemetry/span';
import { AccessStage } from '../../support/access-stage';
import { TraceCollector } from '../../support/trace-collector';

let collector: TraceCollector;
let stage: AccessStage;
beforeEach(async () => {
  collector = await TraceCollector.start();
});
afterEach(async () => {
  await stage?.close();
  await collector.close();
  vi.restoreAllMocks();
  expect(collector.faults).toEqual([]);
});

const begin = async (env: Record<string, string> = {}, dataDir?: string) => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`, OTEL_BSP_SCHEDULE_DELAY: '1' };
  stage = await AccessStage.start({ env: { ...endpoint, ...env }, ...(dataDir === undefined ? {} : { dataDir }) });
};

const T = 1_795_170_000_000;
const send = async (records: object[], from: number, headers: Record<string, string> = {}) => {
  const all = records.map((record, index) => ({
    kind: 'event',
    agentId: 'builder',
    sessionId: 'work',
    occurredAt: T + (from + index) * 1_000,
    ...record,
    seq: from + index,
  }));
  const body = { producer: { id: 'builder/outbox', epoch: 1 }, records: all };
  return stage.send('/api/v1/events', { method: 'POST', body, headers });
};
const custom = (name: string, value: object, also: object = {}) => ({
  event: { type: 'CUSTOM', name, value, ...also },
});

/** A turn that starts a task, and the turn that the task's end wakes, with text that must not be exported. */
const FIRST = [
  { event: { type: 'RUN_STARTED', threadId: 'work', runId: 'r1' } },
  { event: { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' } },
  { event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'the-secret-words' } },
  { event: { type: 'TEXT_MESSAGE_END', messageId: 'm1' } },
  { event: { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' } },
  { event: { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"command":"the-secret-words"}' } },
  { event: { type: 'TOOL_CALL_END', toolCallId: 'c1' } },
  custom('task:started', {
    task_id: 't1',
    tool_use_id: 'c1',
    description: 'the-secret-words',
    task_type: 'local_bash',
  }),
  { event: { type: 'TOOL_CALL_RESULT', messageId: 'm2', toolCallId: 'c1', content: 'the-secret-words' } },
  { event: { type: 'RUN_FINISHED', threadId: 'work', runId: 'r1' } },
];
const SECOND = [
  custom('task:completed', { task_id: 't1', status: 'failed', exit_code: 3, summary: 'the-secret-words' }),
  {
    event: {
      type: 'RUN_STARTED',
      threadId: 'work',
      runId: 'r2',
      metadata: { interlude: { turn: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] } } },
    },
  },
  { event: { type: 'RUN_ERROR', message: 'the-secret-words', code: 'overloaded' } },
];

describe('the server’s own spans', () => {
  test('sends a span per batch with its commit, in the trace of its runner, and one per fan-out tick', async () => {
    await begin({
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test%20bed,service.name=no',
      OTEL_SERVICE_NAME: 'dash',
    });
    const stream = await stage.stream('/stream?topic=session:work', stage.owner);
    await stream.frame('up-to-date');
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    await send(FIRST, 1, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
    await send([...FIRST.slice(-1), ...SECOND], 10);
    await send(SECOND, 40);
    const spans = await collector.named('POST /api/v1/events', 'commit', 'fan-out');
    await expect.poll(() => spans.filter(({ name }) => name === 'POST /api/v1/events').length).toBe(3);
    const batchOf = (records: number) => spans.find(({ attributes }) => attributes['interlude.records'] === records);
    const [first, second, third] = [10, 4, 3].map(batchOf);
    expect(first).toMatchObject({ traceId, parentSpanId: '00f067aa0ba902b7', kind: 2, status: {} });
    expect(first?.attributes).toMatchObject({
      'http.route': '/api/v1/events',
      'interlude.producer.id': 'builder/outbox',
      'interlude.records': 10,
      'interlude.accepted': 10,
      'interlude.duplicates': 0,
      'interlude.rejected': 0,
      'interlude.outcome': 'answered',
    });
    expect(second?.parentSpanId).toBeUndefined();
    expect(second?.attributes).toMatchObject({ 'interlude.accepted': 3, 'interlude.duplicates': 1 });
    expect(third).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'gap' } });
    const commit = spans.find(({ name, parentSpanId }) => name === 'commit' && parentSpanId === first?.spanId);
    expect(commit?.traceId).toBe(traceId);
    expect(spans.find(({ name }) => name === 'fan-out')?.attributes).toMatchObject({ 'interlude.subscribers': 1 });
    expect(collector.resources[0]).toEqual({ 'service.name': 'dash', 'deployment.environment.name': 'test bed' });
    // agent spans are off by default
    expect(new Set(spans.map(({ name }) => name))).toEqual(new Set(['POST /api/v1/events', 'commit', 'fan-out']));
  });

  test('skips a trace that its caller did not sample', async () => {
    await begin();
    await send(FIRST, 1, { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00' });
    await send(SECOND, 11);
    const spans = await collector.named('POST /api/v1/events');
    expect(spans.filter(({ attributes }) => attributes['interlude.records'] === 10)).toEqual([]);
  });
});

describe('agent spans, if enabled', () => {
  test('sends a trace per turn with its calls and tasks, linked to the task that woke it, without any text', async () => {
    await begin({ INTERLUDE_TRACE_AGENTS: '1' });
    await send(FIRST, 1);
    await send(SECOND, 11);
    const spans = await collector.named('invoke_agent builder', 'execute_tool Bash', 'task shell');
    await expect.poll(() => spans.filter(({ name }) => name === 'invoke_agent builder').length).toBe(2);
    const about = { 'gen_ai.agent.id': 'builder', 'gen_ai.conversation.id': 'work' };
    // two turns are read concurrently; either may be exported first
    const turnOf = (id: string) => spans.find(({ spanId }) => spanId === derivedIds('turn', 'work', id).spanId);
    const [first, second] = [turnOf('r1'), turnOf('r2')];
    expect(first).toMatchObject({
      ...derivedIds('turn', 'work', 'r1'),
      startTimeUnixNano: `${T + 1_000}000000`,
      endTimeUnixNano: `${T + 10_000}000000`,
      status: {},
      links: [],
    });
    expect(first?.attributes).toMatchObject({
      ...about,
      'gen_ai.operation.name': 'invoke_agent',
      'interlude.turn.state': 'finished',
    });
    const call = spans.find(({ name }) => name === 'execute_tool Bash');
    expect(call).toMatchObject({ traceId: first?.traceId, parentSpanId: first?.spanId, status: {} });
    expect(call?.attributes).toMatchObject({ ...about, 'gen_ai.tool.name': 'Bash', 'gen_ai.tool.call.id': 'c1' });
    expect([call?.startTimeUnixNano, call?.endTimeUnixNano]).toEqual([`${T + 5_000}000000`, `${T + 9_000}000000`]);
    const task = spans.find(({ name }) => name === 'task shell');
    expect(task).toMatchObject({ traceId: first?.traceId, parentSpanId: call?.spanId, status: { code: 2 } });
    expect(task?.attributes).toMatchObject({ 'interlude.task.status': 'failed', 'process.exit.code': 3 });
    expect(second).toMatchObject({
      ...derivedIds('turn', 'work', 'r2'),
      status: { code: 2 },
      attributes: {
        'interlude.turn.kind': 'between-run',
        'interlude.turn.trigger': 'task',
        'error.type': 'overloaded',
      },
      links: [{ traceId: task?.traceId, spanId: task?.spanId, attributes: { 'interlude.task.id': 't1' } }],
    });
    expect(collector.bodies.join()).not.toContain('the-secret-words');
  });

  test('sends each span once, despite retries and several instances', async () => {
    await begin({ INTERLUDE_TRACE_AGENTS: '1' });
    const one = stage;
    await send(FIRST, 1);
    await send(FIRST, 1);
    await collector.named('invoke_agent builder');
    await begin({ INTERLUDE_TRACE_AGENTS: '1' }, one.dataDir);
    const other = stage;
    await send(FIRST, 1);
    await send(SECOND, 11);
    // the last event has arrived, so no more spans of the first turn will
    await expect.poll(() => collector.spans.filter(({ name }) => name === 'invoke_agent builder').length).toBe(2);
    await other.close();
    stage = one;
    await one.close();
    const told = collector.spans.filter(({ name }) => !/events$|commit|fan-out/.test(name)).map(({ spanId }) => spanId);
    expect(told.length).toBe(4);
    expect(new Set(told).size).toBe(4);
  });
});

describe('a collector that rejects spans', () => {
  test('is retried without blocking callers', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    collector.refusals.push(503, 429);
    await begin({ OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20key,x=1' });
    expect((await send(FIRST, 1)).status).toBe(200);
    await collector.named('POST /api/v1/events');
    expect(collector.headers.length).toBe(3);
    expect(collector.headers[0]).toMatchObject({ 'api-key': 'a key', x: '1' });
    expect(said).not.toHaveBeenCalled();
  });

  test('is logged once, and again when it recovers', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    collector.refusals.push(400, 401);
    await begin();
    await send(FIRST, 1);
    await expect.poll(() => said.mock.calls.length).toBe(1);
    await send(SECOND, 11);
    await expect.poll(() => collector.headers.length).toBe(2);
    await send([custom('note', {})], 14);
    await expect.poll(() => said.mock.calls.length).toBe(2);
    const [trouble, over] = said.mock.calls.map(([line]) => String(line));
    expect(trouble).toMatch(/Can’t export traces to 127\.0\.0\.1:\d+: it responded with 400/);
    expect(over).toContain('Traces are exported again; 4 spans were dropped');
  });
});

test('closes without the spans when the collector never answers', async () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  collector.refusals.push(0);
  await begin();
  await send(FIRST, 1);
  await expect.poll(() => collector.headers.length).toBe(1);
  await stage.close();
  // the caller did not wait for the retry
  expect([collector.headers.length, collector.spans]).toEqual([1, []]);
  expect(said.mock.calls.flat().join()).toMatch(/^\[interlude\] Can’t export traces to/);
});

describe('the settings', () => {
  const url = 'http://collector:4318';
  const settingsOf = (env: Record<string, string>) => otelSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env });

  test.each([
    [{ OTEL_SDK_DISABLED: 'true' }],
    [{ OTEL_TRACES_EXPORTER: 'none' }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
  ])('disable traces: %j', (env) => {
    expect(settingsOf(env as unknown as Record<string, string>)).toBeNull();
  });

  test('are logged if invalid', () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    expect(settingsOf({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toBeNull();
    expect(settingsOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'collector:4318' })).toBeNull();
    expect(said.mock.calls.length).toBe(2);
  });

  test('ignore a fraction, and warn of the variable that is read', () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    expect(settingsOf({ OTEL_EXPORTER_OTLP_TIMEOUT: '1.5' })?.timeoutMs).toBe(10_000);
    expect(said.mock.calls.flat().join()).toContain('OTEL_EXPORTER_OTLP_TIMEOUT=1.5 is not a whole number');
    const both = { OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '20', OTEL_EXPORTER_OTLP_TIMEOUT: '1.5' };
    expect(settingsOf(both)?.timeoutMs).toBe(20);
    expect(said.mock.calls.length).toBe(1);
  });

  test('select the destination and the sampled traces', () => {
    expect(settingsOf({})?.url).toBe(`${url}/v1/traces`);
    expect(settingsOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://x/y' })?.url).toBe('https://x/y');
    const half = settingsOf({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' });
    const kept = Array.from({ length: 1_000 }, () => half?.isSampled(traceContext(null))).filter(Boolean).length;
    expect(kept).toBeGreaterThan(350);
    expect(kept).toBeLessThan(650);
    const off = settingsOf({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' });
    expect(off?.isSampled(traceContext(null))).toBe(false);
    expect(off?.isSampled(traceContext('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'))).toBe(true);
  });

  test.each([
    '',
    'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
  ])('start a new trace for an invalid context: %j', (sent) => {
    expect(traceContext(sent)).toMatchObject({ parentSpanId: null, isSampled: null });
    expect(traceContext(sent).traceId).toMatch(/^[0-9a-f]{32}$/);
  });
});
