import { SESSION_STATES } from '@interlude/protocol/session-states';
import type { RetentionRules } from '@interlude/protocol/storage';
import { CredentialCache } from '@/lib/server/access/credential-cache';
import { RefusalCounter } from '@/lib/server/access/refusal-counter';
import { ResponseCaches, type ServerContext } from '@/lib/server/access/request-context';
import { refreshRole } from '@/lib/server/access/role-refresh';
import type { CommandServer } from '@/lib/server/commands/accept-command';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import type { StreamServer } from '@/lib/server/fan-out/get-stream';
import { GapTally, type IngestServer } from '@/lib/server/ingest/post-events';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import type { Retention } from '@/lib/server/log-store/remove-old-lines';
import { HistoryKeeper } from '@/lib/server/retention/history-keeper';
import type { HistoryRetention } from '@/lib/server/retention/retention-settings';
import { type CountProcess, createMetrics, type Metrics } from '@/lib/server/telemetry/metrics';
import { type Telemetry, telemetryOf } from '@/lib/server/telemetry/telemetry';
import { WebhookSender } from '@/lib/server/webhook/webhook-sender';

interface Observers {
  count: CountProcess;
  listeners: readonly Telemetry[];
}

const NO_OBSERVERS: Observers = { count: () => null, listeners: [] };

/** Everything built on one open database. */
export interface ServerParts extends CommandServer, IngestServer, StreamServer {
  commands: CommandHub;
  logs: LogKeeper;
  history: HistoryKeeper;
  webhooks: WebhookSender;
  credentials: CredentialCache;
  refusals: RefusalCounter;
  metrics: Metrics;
  caches: ResponseCaches;
  /** Retention settings, for display. */
  retention: RetentionRules;
}

/**
 * Creates the parts without background work: `startParts` and `startWhileStreaming` begin it. Streams open on demand.
 */
export function createParts(
  settings: ServerContext,
  retention: { logs: Retention; history: HistoryRetention },
  observers: Observers = NO_OBSERVERS,
): ServerParts {
  const { database, now } = settings;
  const state = () => ({
    subscribers: fanOut.subscriberCount,
    writes: database.writes.load,
    reads: database.reads.waiting,
  });
  const processMetrics = observers.count(state);
  const telemetry = telemetryOf([
    ...(processMetrics === null ? [] : [processMetrics.telemetry]),
    ...observers.listeners,
  ]);
  const caches = settings.caches ?? new ResponseCaches();
  const context = { ...settings, telemetry, caches };
  const fanOut = new FanOut(database, { streams: context.streams ?? null, telemetry });
  return {
    ...context,
    metrics: createMetrics(database, now, processMetrics, caches.metrics),
    fanOut,
    commands: new CommandHub(context),
    logs: new LogKeeper(context, retention.logs),
    history: new HistoryKeeper(context, retention.history),
    gaps: new GapTally(),
    webhooks: new WebhookSender(context),
    credentials: new CredentialCache({
      ...context,
      refreshRole: context.oidc ? (credentialId) => refreshRole(context, credentialId) : null,
    }),
    refusals: new RefusalCounter(context),
    retention: retentionRules(retention),
  };
}

/** Starts all background work. */
export function startParts({ commands, logs, history, webhooks, refusals }: ServerParts): void {
  for (const part of [commands, logs, history, webhooks, refusals]) part.start();
}

/**
 * Starts commands and webhooks, for a process that may freeze once its streams have ended. Other work could outlast the
 * streams, so `GET /cron` does it.
 */
export function startWhileStreaming({ commands, webhooks }: ServerParts): void {
  for (const part of [commands, webhooks]) part.start();
}

/** Sends `bye` to every stream and stops background work. */
export function closeParts(parts: ServerParts): void {
  const { fanOut, commands, logs, history, webhooks, credentials, refusals } = parts;
  for (const part of [fanOut, commands, logs, history, webhooks, credentials, refusals]) part.close();
}

/**
 * `GET /cron`: does all due work now, for hosts whose processes freeze. Reads also do the part of the work that affects
 * their result.
 */
export async function runDueWork({
  commands,
  logs,
  history,
  webhooks,
  refusals,
}: ServerParts): Promise<{ status: 'done' }> {
  await commands.sweepDue();
  await logs.indexAll();
  await logs.retain();
  await history.retain();
  await webhooks.send();
  await refusals.flushDue();
  return { status: 'done' };
}

const DAY_MS = 24 * 60 * 60_000;

/** Retention settings as JSON, which has no `Infinity`. */
export function retentionRules({ logs, history }: { logs: Retention; history: HistoryRetention }): RetentionRules {
  const days = (ms: number) => limit(ms / DAY_MS);
  return {
    days: Object.fromEntries(
      SESSION_STATES.map((state) => [state, days(history.maxAgeMs[state])]),
    ) as RetentionRules['days'],
    elsewhereDays: days(history.elsewhereMs),
    auditDays: days(history.auditMs),
    maxBytes: limit(history.maxBytes),
    logs: { days: logs.maxAgeMs / DAY_MS, maxBytes: logs.maxBytes },
  };
}

function limit(most: number): number | null {
  return Number.isFinite(most) ? most : null;
}
