import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { canonicalJson } from './canonical-json';
import type { Position } from './position';

/** What a person sees who answers a request of an agent. */
export interface OpenedRequest {
  sessionId: string;
  requestId: string;
  /** Null if the agent names none. */
  tool: string | null;
  input: unknown;
  /** Where it was opened. */
  position: Position;
}

/**
 * By which an answer names the very request it answers. The server computes it when the request is opened, and whoever
 * holds the request computes it again before the answer counts. In plain JavaScript, because ingest decides in one
 * step.
 */
export function requestDigest({ sessionId, requestId, tool, input, position }: OpenedRequest): string {
  return digestOf({ sessionId, requestId, tool, input: input ?? null, position });
}

/** SHA-256 of the value's canonical JSON, in lower-case hex. */
export function digestOf(value: unknown): string {
  return bytesToHex(sha256(utf8ToBytes(canonicalJson(value))));
}
