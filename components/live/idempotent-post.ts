'use client';

import { useState } from 'react';
import { newId } from '@/components/ui/new-id';
import { postJson, RequestError } from './fetch-json';

/**
 * Sends a POST request that must not act twice.
 *
 * Failure: a request without a response keeps its clientId, so that a retry can't act twice. A different request gets a
 * new one.
 */
export class IdempotentPost {
  #pending: { request: string; clientId: string } | null = null;

  /** @throws like `postJson` */
  async post<Body>(path: string, body: object): Promise<Body> {
    const request = JSON.stringify([path, body]);
    if (this.#pending?.request !== request) this.#pending = { request, clientId: newId() };
    const { clientId } = this.#pending;
    try {
      const response = await postJson<Body>(path, { ...body, clientId });
      this.#pending = null;
      return response;
    } catch (error) {
      if (error instanceof RequestError && error.status < 500) this.#pending = null;
      throw error;
    }
  }
}

type PostState<Body> =
  | { kind: 'idle' | 'sending' }
  | { kind: 'done'; response: Body }
  | { kind: 'failed'; reason: string };

/** A POST request and its state. */
export function usePost<Body>(): [PostState<Body>, (path: string, body?: object) => Promise<void>] {
  const [state, setState] = useState<PostState<Body>>({ kind: 'idle' });
  const [request] = useState(() => new IdempotentPost());
  const post = async (path: string, body: object = {}) => {
    setState({ kind: 'sending' });
    try {
      setState({ kind: 'done', response: await request.post<Body>(path, body) });
    } catch (error) {
      setState({ kind: 'failed', reason: (error as Error).message });
    }
  };
  return [state, post];
}
