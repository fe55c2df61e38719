'use client';

import { useState } from 'react';
import { newId } from '@/components/ui/new-id';
import { postJson, RequestError } from './fetch-json';

/**
 * Asks the server to act.
 *
 * Failure: an ask that got no answer keeps its clientId, so that asking the same again can't do it twice. Asking for
 * something else instead is another ask.
 */
export class Ask {
  #unanswered: { asked: string; clientId: string } | null = null;

  /** @throws as `postJson` */
  async post<Answer>(path: string, body: object): Promise<Answer> {
    const asked = JSON.stringify([path, body]);
    if (this.#unanswered?.asked !== asked) this.#unanswered = { asked, clientId: newId() };
    const { clientId } = this.#unanswered;
    try {
      const answer = await postJson<Answer>(path, { ...body, clientId });
      this.#unanswered = null;
      return answer;
    } catch (error) {
      if (error instanceof RequestError && error.status < 500) this.#unanswered = null;
      throw error;
    }
  }
}

type AskState<Answer> =
  | { kind: 'idle' | 'sending' }
  | { kind: 'answered'; answer: Answer }
  | { kind: 'failed'; reason: string };

/** One thing that can be asked of the server here, and how that goes. */
export function useAsk<Answer>(): [AskState<Answer>, (path: string, body?: object) => Promise<void>] {
  const [state, setState] = useState<AskState<Answer>>({ kind: 'idle' });
  const [asked] = useState(() => new Ask());
  const ask = async (path: string, body: object = {}) => {
    setState({ kind: 'sending' });
    try {
      setState({ kind: 'answered', answer: await asked.post<Answer>(path, body) });
    } catch (error) {
      setState({ kind: 'failed', reason: (error as Error).message });
    }
  };
  return [state, ask];
}
