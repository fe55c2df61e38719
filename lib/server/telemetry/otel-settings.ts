import { serverLog } from '@interlude/protocol/server-log.mjs';
import { isHttpUrl } from '@interlude/protocol/text';
import { choiceSetting, numberSetting } from '@/lib/server/access/access-settings';
import type { Attributes, TraceContext } from './span';

/** Trace settings. @see https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ */
export interface OtelSettings {
  url: string;
  headers: Record<string, string>;
  resource: Attributes;
  timeoutMs: number;
  /** Milliseconds for which spans are batched before they are sent. */
  delayMs: number;
  /** Limits of queued spans and of spans per request. */
  mostWaiting: number;
  mostAtOnce: number;
  /** Samples the traces of the server's own work. */
  isSampled(context: TraceContext): boolean;
  /** Also exports traces of agents' work. */
  tracesAgents: boolean;
}

type Environment = Record<string, string | undefined>;

const ON = ['1', 'true', 'yes', 'on'];
const OFF = ['0', 'false', 'no', 'off'];

/** @returns null without a collector */
export function otelSettings(env: Environment): OtelSettings | null {
  const url = endpointOf(env);
  if (url === null || env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true') return null;
  const exporter = env.OTEL_TRACES_EXPORTER?.trim() || 'otlp';
  if (exporter !== 'otlp') {
    if (exporter !== 'none') serverLog('error', `Traces are not sent: OTEL_TRACES_EXPORTER is ${exporter}. Use otlp.`);
    return null;
  }
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL;
  if (protocol === 'grpc') {
    serverLog(
      'error',
      'Traces are not sent: OTEL_EXPORTER_OTLP_PROTOCOL is grpc. Use http/json, and the port for HTTP.',
    );
    return null;
  }
  if (!isHttpUrl(url)) {
    serverLog('error', 'Traces are not sent: OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL.');
    return null;
  }
  return {
    url,
    headers: {
      ...pairsIn(env.OTEL_EXPORTER_OTLP_HEADERS),
      ...pairsIn(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
    },
    resource: {
      'service.name': env.OTEL_SERVICE_NAME || 'interlude',
      ...pairsIn(env.OTEL_RESOURCE_ATTRIBUTES),
      ...(env.OTEL_SERVICE_NAME ? { 'service.name': env.OTEL_SERVICE_NAME } : {}),
    },
    timeoutMs: number(
      env,
      env.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ? 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT' : 'OTEL_EXPORTER_OTLP_TIMEOUT',
      10_000,
    ),
    delayMs: number(env, 'OTEL_BSP_SCHEDULE_DELAY', 5_000),
    mostWaiting: number(env, 'OTEL_BSP_MAX_QUEUE_SIZE', 2_048),
    mostAtOnce: number(env, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
    isSampled: samplerOf(env),
    tracesAgents: ON.includes(
      choiceSetting(env, 'INTERLUDE_TRACE_AGENTS', { choices: [...ON, ...OFF], byDefault: '0' }),
    ),
  };
}

function endpointOf(env: Environment): string | null {
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?.trim();
  if (own) return own;
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT?.trim();
  return base ? `${base.replace(/\/+$/, '')}/v1/traces` : null;
}

/** `name=value,name=value`, values percent-encoded. */
function pairsIn(text = ''): Record<string, string> {
  const pairs = text.split(',').flatMap((pair) => {
    const equals = pair.indexOf('=');
    return equals < 1 ? [] : [[pair.slice(0, equals).trim(), decoded(pair.slice(equals + 1).trim())] as const];
  });
  return Object.fromEntries(pairs);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function number(env: Environment, name: string, byDefault: number): number {
  const range = { isWhole: true, min: 1, max: 999_999_999 };
  return numberSetting(env, name, { ...range, byDefault, otherwise: `using ${byDefault}` });
}

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]);

function samplerOf(env: Environment): OtelSettings['isSampled'] {
  const name = choiceSetting(env, 'OTEL_TRACES_SAMPLER', { choices: SAMPLERS, byDefault: 'parentbased_always_on' });
  const share = Math.min(Math.max(Number.parseFloat(env.OTEL_TRACES_SAMPLER_ARG ?? '1'), 0), 1);
  const root = name.replace(/^parentbased_/, '');
  const ofRoot = (traceId: string) => {
    if (root === 'always_off') return false;
    // deterministic, so every server makes the same decision for a trace
    return root !== 'traceidratio' || Number.parseInt(traceId.slice(-13), 16) / 16 ** 13 < (share >= 0 ? share : 1);
  };
  if (!name.startsWith('parentbased_')) return ({ traceId }) => ofRoot(traceId);
  return ({ traceId, isSampled }) => isSampled ?? ofRoot(traceId);
}
