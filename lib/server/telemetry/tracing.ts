import type { Database } from '@/db/client';
import { AgentSpans } from './agent-spans';
import type { OtelSettings } from './otel-settings';
import { randomSpanId, traceContext } from './span';
import { SpanExporter } from './span-exporter';
import type { Ingested, Published, Telemetry } from './telemetry';

const MAX_FLUSH_MS = 1_000;

export interface Tracing {
  listeners: readonly Telemetry[];
  /** Sends all spans so far, waiting for a second at most. Never rejects. */
  flush(): Promise<void>;
  /** Like `flush`, then drops unsent spans. */
  close(): Promise<void>;
}

export function startTracing(settings: OtelSettings, database: Database): Tracing {
  const exporter = new SpanExporter(settings);
  const agents = settings.tracesAgents ? new AgentSpans(database, exporter) : null;
  async function flush(): Promise<void> {
    const sent = (async () => {
      await agents?.settled();
      await exporter.flush();
    })();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, MAX_FLUSH_MS);
    });
    await Promise.race([sent, late]);
    clearTimeout(timer);
  }
  return {
    listeners: [serverSpans(exporter, settings), ...(agents === null ? [] : [agents])],
    flush,
    async close() {
      await flush();
      exporter.close();
    },
  };
}

/** Spans of the server's own work: each batch and its commit in the trace of its runner, and each fan-out tick. */
function serverSpans(exporter: SpanExporter, { isSampled }: OtelSettings): Telemetry {
  return {
    ingested(event) {
      const context = traceContext(event.traceparent);
      if (isSampled(context)) exporter.add(...ingestSpans(event, context));
    },
    published(event) {
      const context = traceContext(null);
      if (isSampled(context)) exporter.add(fanOutSpan(event, context.traceId));
    },
  };
}

function ingestSpans(event: Ingested, { traceId, parentSpanId }: ReturnType<typeof traceContext>) {
  const { producerId, records, outcome, kind, bytes, receivedAt, waitedMs, tookMs } = event;
  const spanId = randomSpanId();
  const error = kind === 'answered' ? {} : { error: kind };
  const ingest = {
    traceId,
    spanId,
    ...(parentSpanId === null ? {} : { parentSpanId }),
    name: 'POST /api/v1/events',
    kind: 'server' as const,
    startedAt: receivedAt,
    endedAt: receivedAt + tookMs,
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/api/v1/events',
      'http.request.body.size': bytes,
      'interlude.producer.id': producerId,
      'interlude.records': records,
      'interlude.outcome': kind,
      'interlude.accepted': outcome?.accepted ?? null,
      'interlude.duplicates': outcome?.duplicates ?? null,
      'interlude.rejected': outcome?.rejected ?? null,
    },
    ...error,
  };
  const commit = {
    traceId,
    spanId: randomSpanId(),
    parentSpanId: spanId,
    name: 'commit',
    kind: 'internal' as const,
    startedAt: receivedAt + waitedMs,
    endedAt: receivedAt + tookMs,
    attributes: { 'interlude.waited_ms': waitedMs },
    ...error,
  };
  return [ingest, commit];
}

function fanOutSpan({ rows, subscribers, at, tookMs, lagMs }: Published, traceId: string) {
  return {
    traceId,
    spanId: randomSpanId(),
    name: 'fan-out',
    kind: 'internal' as const,
    startedAt: at,
    endedAt: at + tookMs,
    attributes: { 'interlude.rows': rows, 'interlude.subscribers': subscribers, 'interlude.lag_ms': lagMs },
  };
}
