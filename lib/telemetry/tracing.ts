import type { Database } from '@/db/client';
import { AgentSpans } from './agent-spans';
import type { OtelSettings } from './otel-settings';
import { serverSpans } from './server-spans';
import { SpanExporter } from './span-exporter';
import type { Telemetry } from './telemetry';

/** Traces, as long as somebody collects them. */
export interface Tracing {
  listeners: readonly Telemetry[];
  /** Sends all that was told so far. Never rejects. */
  flush(): Promise<void>;
}

export function tracing(settings: OtelSettings, database: Database): Tracing {
  const exporter = new SpanExporter(settings);
  const agents = settings.tracesAgents ? new AgentSpans(database, exporter) : null;
  return {
    listeners: [serverSpans(exporter, settings), ...(agents === null ? [] : [agents])],
    async flush() {
      await agents?.settled();
      await exporter.flush();
    },
  };
}
