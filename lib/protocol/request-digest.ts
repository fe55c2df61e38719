import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { RequestOption } from './ag-ui';
import { canonicalJson } from './json';
import type { Position } from './position';
import { readRequestOptions } from './request-options';

/** What a person sees who answers a request of an agent. */
export interface OpenedRequest {
  sessionId: string;
  requestId: string;
  /** Null if the agent names none. */
  tool: string | null;
  input: unknown;
  /** The answers that it offers, if it is a permission: what a person chooses by its label is what it stands for. */
  options?: readonly RequestOption[] | undefined;
  /** Where it was opened. */
  position: Position;
}

/**
 * By which an answer names the very request it answers. The server computes it when the request is opened, and whoever
 * holds the request computes it again before the answer counts. In plain JavaScript, because ingest decides in one
 * step.
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
