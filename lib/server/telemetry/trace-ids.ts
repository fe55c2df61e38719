import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/**
 * Ids of traces and spans. Those of what agents did follow from what it is, so that a span can be linked to that another
 * instance has told, or this one before it was started anew.
 */
export function idsOf(...parts: readonly (string | null)[]): { traceId: string; spanId: string } {
  const hex = bytesToHex(sha256(utf8ToBytes(JSON.stringify(parts))));
  return { traceId: hex.slice(0, 32), spanId: hex.slice(32, 48) };
}

export function randomSpanId(): string {
  return bytesToHex(crypto.getRandomValues(new Uint8Array(8)));
}

export interface TraceContext {
  traceId: string;
  /** The caller's span; null for one that begins here. */
  parentSpanId: string | null;
  /** Whether the caller wants it kept; null if it did not say. */
  isSampled: boolean | null;
}

/** Goes on with the caller's trace, or begins one. @see https://www.w3.org/TR/trace-context/ */
export function traceContext(traceparent: string | null): TraceContext {
  const [, traceId = '', parentSpanId = '', flags = ''] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/.exec(traceparent ?? '') ?? [];
  if (!/[1-9a-f]/.test(traceId) || !/[1-9a-f]/.test(parentSpanId) || traceparent?.startsWith('ff')) {
    return { traceId: bytesToHex(crypto.getRandomValues(new Uint8Array(16))), parentSpanId: null, isSampled: null };
  }
  return { traceId, parentSpanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
