import { LOG_LEVELS } from '@interlude/protocol/vocabulary';
import { type ContextKind, checkContext } from '@/db/client';
import {
  accessSettings,
  choiceSetting,
  numberSetting,
  redactedRoles,
  sessionIdleMs,
  sessionMs,
} from './access/access-settings';
import { embedOrigins } from './access/embeds';
import { oidcSettings } from './access/oidc/oidc-settings';
import { replyOverdueMs, undeliveredMs } from './commands/overdue';
import { logRetention } from './log-store/remove-old-lines';
import { historyRetention } from './retention/retention-settings';
import { otelSettings } from './telemetry/otel-settings';
import { webhookSetting } from './webhook/webhook-settings';

type Environment = Record<string, string | undefined>;

/** Streams send `bye` before the host cuts them off, usually after five minutes. */
const PER_REQUEST_STREAM_SECONDS = 280;
/** Longest delay of `setTimeout`, in seconds. */
const MAX_STREAM_SECONDS = 2_147_483;

export type ServerSettings = ReturnType<typeof serverSettings>;

/**
 * Parses all settings at once, so that the start reports invalid ones, not a later request.
 *
 * Failure: throws for a value whose default could expose data or make the server unusable. The log names every other
 * invalid value and its effect.
 *
 * @throws AppError `unavailable`, naming the setting
 */
export function serverSettings(env: Environment, kind: ContextKind) {
  // settings that throw come first, because a refused start should log one line only
  const strict = {
    access: accessSettings(env),
    oidc: oidcSettings(env),
    embedOrigins: embedOrigins(env),
    redactedRoles: redactedRoles(env),
  };
  checkContext(env, kind);
  // only checked here: the log reads them for each line
  choiceSetting(env, 'INTERLUDE_LOG_LEVEL', {
    choices: LOG_LEVELS,
    byDefault: 'info',
  });
  choiceSetting(env, 'INTERLUDE_LOG_FORMAT', { choices: ['text', 'json'], byDefault: 'text' });
  const { webhook, problem: webhookProblem } = webhookSetting(env);
  return {
    ...strict,
    streamMaxMs: streamMaxMs(env, kind),
    replyOverdueMs: replyOverdueMs(env),
    undeliveredMs: undeliveredMs(env),
    webhook,
    webhookProblem,
    sessionIdleMs: sessionIdleMs(env),
    sessionMs: sessionMs(env),
    retention: { logs: logRetention(env), history: historyRetention(env) },
    otel: otelSettings(env),
  };
}

/** @returns null for no limit */
function streamMaxMs(env: Environment, kind: ContextKind): number | null {
  const byDefault = kind === 'shared' ? null : PER_REQUEST_STREAM_SECONDS;
  const otherwise = byDefault === null ? 'streams have no limit' : `streams end after ${byDefault} seconds`;
  const name = 'INTERLUDE_STREAM_MAX_SECONDS';
  const seconds = numberSetting(env, name, { byDefault, max: MAX_STREAM_SECONDS, otherwise });
  return seconds === null ? null : seconds * 1_000;
}
