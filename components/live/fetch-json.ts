'use client';

import type { ErrorBody, ErrorCode } from '@interlude/protocol/errors';
import { useEffect, useState } from 'react';
import { leavePage } from '@/components/ui/leave-page';
import { knownUntil } from '@/components/ui/now';
import { askServer, page } from './ask-server';

/** An answer that was not 2xx. `message` is the server's own sentence: it says what to do next. */
export class RequestError extends Error {
  readonly status: number;
  /** Null if the answer was not Interlude's. */
  readonly code: ErrorCode | null;

  constructor(status: number, message: string, code: ErrorCode | null = null) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
    this.code = code;
  }
}

/** Longer than this no answer is waited for: what is asked for may be much, what is sent is little. */
const READ_WITHIN_MS = 30_000;
const SENT_WITHIN_MS = 15_000;
/** The same where the live connection says already that the server is away. It is asked all the same, as that may err. */
const STALE_WITHIN_MS = 5_000;

/**
 * GET a read model.
 *
 * @param path below /api/v1, with a leading slash
 * @throws RequestError, or TypeError when the server can't be reached
 */
export function fetchJson<Body>(path: string, signal?: AbortSignal): Promise<Body> {
  return ask(path, { headers: { accept: 'application/json' } }, READ_WITHIN_MS, signal);
}

/**
 * Asks something of the server.
 *
 * @param path below /api/v1, with a leading slash
 * @throws RequestError, or TypeError when no answer came, and then nobody knows whether it was heard
 */
export function postJson<Body>(path: string, body: object): Promise<Body> {
  return sendJson('POST', path, body);
}

/** As `postJson`, for what replaces what was there and may be sent again. */
export function putJson<Body>(path: string, body: object): Promise<Body> {
  return sendJson('PUT', path, body);
}

/** Ends what is at that path. */
export function deleteJson<Body>(path: string): Promise<Body> {
  return ask(path, { method: 'DELETE', headers: { accept: 'application/json' } }, SENT_WITHIN_MS);
}

function sendJson<Body>(method: string, path: string, body: object): Promise<Body> {
  const headers = { accept: 'application/json', 'content-type': 'application/json' };
  return ask(path, { method, headers, body: JSON.stringify(body) }, SENT_WITHIN_MS);
}

/** A browser's error says what happened to the request, but not what to do about it. */
async function ask<Body>(
  path: string,
  init: { method?: string; headers: Record<string, string>; body?: string },
  withinMs: number,
  signal?: AbortSignal,
): Promise<Body> {
  const late = AbortSignal.timeout(knownUntil() === null ? withinMs : STALE_WITHIN_MS);
  try {
    const response = await askServer(path, {
      ...init,
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    return await bodyOf(response);
  } catch (error) {
    const isLate = late.aborted && signal?.aborted !== true && !(error instanceof RequestError);
    if (!isLate && !(error instanceof TypeError)) throw error;
    throw new TypeError('The server can’t be reached. See that it runs and try again.', { cause: error });
  }
}

async function bodyOf<Body>(response: Response): Promise<Body> {
  if (response.ok) return (await response.json()) as Body;
  const body = (await response.json().catch(() => null)) as Partial<ErrorBody> | null;
  const { code = null, message } = body?.error ?? {};
  if (code === 'other_principal') leavePage();
  throw new RequestError(
    response.status,
    message ?? `The server answered ${response.status}. Reload to try again.`,
    code,
  );
}

/** So many are asked at once: a browser keeps six connections to a server, and the page needs some. */
const AT_ONCE = 4;

/** Does the same for each of many, in their order, a few at a time. */
export async function fewAtOnce<Item>(items: Iterable<Item>, job: (item: Item) => Promise<void>): Promise<void> {
  const next = items[Symbol.iterator]();
  const worker = async () => {
    for (let step = next.next(); !step.done; step = next.next()) await job(step.value);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/**
 * Where an `<img>` finds bytes of the API: there, or where this page asks in a way of its own, in what it was given.
 *
 * @returns undefined until they are there, and where they can't be had
 */
export function useSource(href: string | undefined): string | undefined {
  const [given, setGiven] = useState<string>();
  useEffect(() => {
    const { way } = page;
    if (way === null || href === undefined) return;
    let address: string | null = null;
    const left = new AbortController();
    void (async () => {
      const answer = await way(href, { signal: left.signal });
      if (!answer.ok) return;
      const bytes = await answer.blob();
      if (left.signal.aborted) return;
      address = URL.createObjectURL(bytes);
      setGiven(address);
    })().catch(() => {
      // as a picture that does not come
    });
    return () => {
      left.abort();
      if (address !== null) URL.revokeObjectURL(address);
    };
  }, [href]);
  return page.way === null ? href : given;
}
