import type { RetentionRules } from '@interlude/protocol/storage';
import { CredentialBook } from '@/lib/server/access/credential-book';
import { Refusals } from '@/lib/server/access/refusals';
import { refreshRole } from '@/lib/server/access/role-refresh';
import { KeptAnswers, type ServerContext } from '@/lib/server/access/server-context';
import { CommandHub, type CommandServer } from '@/lib/server/commands/command-hub';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import type { StreamServer } from '@/lib/server/fan-out/get-stream';
import type { IngestServer } from '@/lib/server/ingest/post-events';
import { GapTally } from '@/lib/server/ingest/post-events';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import type { Retention } from '@/lib/server/log-store/remove-old-lines';
import { HistoryKeeper } from '@/lib/server/retention/history-keeper';
import type { HistoryRetention } from '@/lib/server/retention/retention-settings';
import { type CountProcess, Metrics } from '@/lib/server/telemetry/metrics';
import { type Telemetry, telemetryOf } from '@/lib/server/telemetry/telemetry';
import { WebhookSender } from '@/lib/server/webhook/webhook-sender';
import { retentionRules } from './retention-rules';

/** Who looks at the server's work. */
export interface Watching {
  count: CountProcess;
  listeners: readonly Telemetry[];
}

const NOBODY: Watching = { count: () => null, listeners: [] };

/** Everything built on one open database. Each handler takes the parts it needs. */
export interface ServerParts extends CommandServer, IngestServer, StreamServer {
  logs: LogKeeper;
  history: HistoryKeeper;
  webhooks: WebhookSender;
  credentials: CredentialBook;
  refusals: Refusals;
  metrics: Metrics;
  kept: KeptAnswers;
  /** How long what has happened is kept, for those who ask. */
  retention: RetentionRules;
}

/**
 * None of them does anything yet: streams open by themselves, and the rest begins with `keepParts` or `keepStreamed`.
 *
 * @param watching who is told of the server's work, and how it is counted
 */
export function serverParts(
  given: ServerContext,
  retention: { logs: Retention; history: HistoryRetention },
  watching: Watching = NOBODY,
): ServerParts {
  const { database, now } = given;
  const state = () => ({
    subscribers: fanOut.subscriberCount,
    writes: database.writes.load,
    reads: database.reads.waiting,
  });
  const counted = watching.count(state);
  const telemetry = telemetryOf([...(counted === null ? [] : [counted.telemetry]), ...watching.listeners]);
  const kept = given.kept ?? new KeptAnswers();
  const context = { ...given, telemetry, kept };
  const fanOut = new FanOut(database, { streams: context.streams ?? null, telemetry });
  return {
    ...context,
    metrics: new Metrics(database, now, counted, kept.metrics),
    fanOut,
    commands: new CommandHub(context),
    logs: new LogKeeper(context, retention.logs),
    history: new HistoryKeeper(context, retention.history),
    gaps: new GapTally(),
    webhooks: new WebhookSender(context),
    credentials: new CredentialBook({
      ...context,
      refreshRole: context.oidc ? (credentialId) => refreshRole(context, credentialId) : null,
    }),
    refusals: new Refusals(context),
    retention: retentionRules(retention),
  };
}

/** From now on, what is due is done without being asked for. */
export function keepParts({ commands, logs, history, webhooks, refusals }: ServerParts): void {
  for (const part of [commands, logs, history, webhooks, refusals]) part.keep();
}

/**
 * The same while a stream is open in a process that may freeze after it: only what those who look are to see of the time
 * that passes, and what others are told of it. History, logs and refusals would still be at work when the stream has ended:
 * `GET /cron` looks through them.
 */
export function keepStreamed({ commands, webhooks }: ServerParts): void {
  for (const part of [commands, webhooks]) part.keep();
}

/** Says `bye` to every stream, and begins nothing more. */
export function closeParts(parts: ServerParts): void {
  const { fanOut, commands, logs, history, webhooks, credentials, refusals } = parts;
  for (const part of [fanOut, commands, logs, history, webhooks, credentials, refusals]) part.close();
}

/**
 * `GET /cron`: does everything that is due, now. For hosts whose processes do not last, which call it now and then; what
 * somebody would see is done before it is shown, too.
 */
export async function doAllDue({
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
  await refusals.tellDue();
  return { status: 'done' };
}
