import type { Database } from '@/db/client';
import { AgentSpans } from './agent-spans';
import type { OtelSettings } from './otel-settings';
import { serverSpans } from './server-spans';
import { SpanExporter } from './span-exporter';
import type { Telemetry } from './telemetry';

const MOST_FLUSH_MS = 1_000;

/** Traces, as long as somebody collects them. */
export interface Tracing {
  listeners: readonly Telemetry[];
  /** Sends all that was told so far, as far as that takes a second: whoever waits is held up no longer. Never rejects. */
  flush(): Promise<void>;
  /** The same, and whatever is not sent by then is dropped. */
  close(): Promise<void>;
}

export function tracing(settings: OtelSettings, database: Database): Tracing {
  const exporter = new SpanExporter(settings);
  const agents = settings.tracesAgents ? new AgentSpans(database, exporter) : null;
  async function flush(): Promise<void> {
    const sent = (async () => {
      await agents?.settled();
      await exporter.flush();
    })();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, MOST_FLUSH_MS);
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
