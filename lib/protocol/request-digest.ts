import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { RequestOption } from './ag-ui';
import { readRequestOptions } from './event-fields';
import { canonicalJson } from './json';
import type { Position } from './position';

/** An agent's request as the answering person sees it. */
interface OpenedRequest {
  sessionId: string;
  requestId: string;
  tool: string | null;
  input: unknown;
  /** Offered answers to a permission. The digest covers them, so that a label can't change its meaning. */
  options?: readonly RequestOption[] | undefined;
  /** Position of the request. */
  position: Position;
}

/**
 * Identifies a request in its answer. The server computes the digest when the request is opened; the runner that holds
 * the request computes it again before it applies the answer. Synchronous, unlike crypto.subtle, for ingest.
 */
export function requestDigest({ sessionId, requestId, tool, input, options, position }: OpenedRequest): string {
  const offered = readRequestOptions(options);
  const offer = offered.length === 0 ? {} : { options: offered };
  return digestOf({ sessionId, requestId, tool, input: input ?? null, ...offer, position });
}

/** SHA-256 of the value's canonical JSON, in lower-case hex. */
export function digestOf(value: unknown): string {
  return bytesToHex(sha256(utf8ToBytes(canonicalJson(value))));
}
