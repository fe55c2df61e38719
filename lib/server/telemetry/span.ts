import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/**
 * A span as OTLP/HTTP JSON. Encoded by hand, because an SDK doesn't accept our predetermined ids and times, and because
 * the SDK and its exporter are larger than this server.
 *
 * @see https://opentelemetry.io/docs/specs/otlp/ 1.7, JSON Protobuf Encoding
 */
export interface Span {
  /** 32 and 16 hex digits. */
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: 'internal' | 'server';
  /** Epoch milliseconds, with fractions. */
  startedAt: number;
  endedAt: number;
  attributes: Attributes;
  links?: readonly SpanLink[];
  /** One-word cause of a failure. */
  error?: string;
}

export interface SpanLink {
  traceId: string;
  spanId: string;
  attributes: Attributes;
}

/** Null values are omitted. */
export type Attributes = Record<string, string | number | boolean | readonly string[] | null>;

const KIND = { internal: 1, server: 2 } as const;
const FAILED = 2;

/** An ExportTraceServiceRequest. */
export function otlpRequest(spans: readonly Span[], resource: Attributes): object {
  const scope = { name: 'interlude' };
  return {
    resourceSpans: [
      { resource: { attributes: keyValues(resource) }, scopeSpans: [{ scope, spans: spans.map(otlpSpan) }] },
    ],
  };
}

function otlpSpan({ traceId, spanId, parentSpanId, name, kind, attributes, links = [], error, ...times }: Span) {
  const all = error === undefined ? attributes : { ...attributes, 'error.type': error };
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name,
    kind: KIND[kind],
    startTimeUnixNano: nanos(times.startedAt),
    // a viewer must not see a negative duration
    endTimeUnixNano: nanos(Math.max(times.endedAt, times.startedAt)),
    attributes: keyValues(all),
    links: links.map((link) => ({ ...link, attributes: keyValues(link.attributes) })),
    status: error === undefined ? {} : { code: FAILED },
  };
}

/** Nanoseconds exceed a double's precision. */
function nanos(ms: number): string {
  const whole = Math.floor(ms);
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1_000_000)));
}

function keyValues(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === null ? [] : [{ key, value: anyValue(value) }],
  );
}

function anyValue(value: string | number | boolean | readonly string[]): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((one) => ({ stringValue: one })) } };
}

/**
 * Trace and span ids derived from what they describe, so a span can link to one exported by another instance or
 * before a restart.
 */
export function derivedIds(...parts: readonly (string | null)[]): { traceId: string; spanId: string } {
  const hex = bytesToHex(sha256(utf8ToBytes(JSON.stringify(parts))));
  return { traceId: hex.slice(0, 32), spanId: hex.slice(32, 48) };
}

export function randomSpanId(): string {
  return bytesToHex(crypto.getRandomValues(new Uint8Array(8)));
}

export interface TraceContext {
  traceId: string;
  /** The caller's span; null for a new trace. */
  parentSpanId: string | null;
  /** The caller's decision; null if unstated. */
  isSampled: boolean | null;
}

/** Continues the caller's trace, or starts one. @see https://www.w3.org/TR/trace-context/ */
export function traceContext(traceparent: string | null): TraceContext {
  const [, traceId = '', parentSpanId = '', flags = ''] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/.exec(traceparent ?? '') ?? [];
  if (!/[1-9a-f]/.test(traceId) || !/[1-9a-f]/.test(parentSpanId) || traceparent?.startsWith('ff')) {
    return { traceId: bytesToHex(crypto.getRandomValues(new Uint8Array(16))), parentSpanId: null, isSampled: null };
  }
  return { traceId, parentSpanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
