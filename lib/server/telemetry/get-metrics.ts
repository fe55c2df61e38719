import type { RedactedFor } from '@interlude/protocol/redaction/outlets';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { Asked } from '@/lib/server/access/asked';
import type { Metrics } from './metrics';

/** `GET /metrics`, in Prometheus' text format. Nothing in it is of a single agent or session. */
export async function getMetrics(_asked: Asked, { metrics }: { metrics: Metrics }): Promise<Response> {
  const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'cache-control': 'no-store' };
  const text: RedactedFor<'metrics'> = await metrics.text();
  return markRedacted(new Response(text, { headers }));
}
