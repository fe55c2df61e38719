import { HttpAgent as HttpAgent1 } from '@ag-ui/client';
import { HttpAgent as HttpAgent0059 } from 'ag-ui-client-0059';
import type { ClientEvent, Dialect } from '@/lib/server/agui/client-events';

/** The strict clients themselves, each under the dialect that it speaks. */
export const CLIENTS = { '1.0': HttpAgent1, '0.0.59': HttpAgent0059 } as const;

/** The part of them that is the same in both. */
export interface StrictClient {
  messages: { id: string; role: string; content?: unknown; [field: string]: unknown }[];
  threadId: string;
  pendingInterrupts: { id: string; [field: string]: unknown }[];
  isRunning: boolean;
  addMessage(message: unknown): void;
  setMessages(messages: unknown[]): void;
  abortRun(): void;
  runAgent(parameters?: object, subscriber?: object): Promise<{ result: unknown; newMessages: unknown[] }>;
}

export function strictClient(
  dialect: Dialect,
  options: { url: string; token?: string; threadId?: string; fetch?: typeof fetch },
): StrictClient {
  const { url, token, threadId, fetch: fetches } = options;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const config = { url, headers, threadId, ...(fetches === undefined ? {} : { fetch: fetches }) };
  return new CLIENTS[dialect](config as never) as unknown as StrictClient;
}

/** What a client makes of a stream. @returns why it refuses it; null if it takes it */
export async function clientRefuses(events: readonly ClientEvent[], dialect: Dialect): Promise<string | null> {
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const headers = { 'content-type': 'text/event-stream' };
  const client = strictClient(dialect, {
    url: 'http://127.0.0.1:9/',
    threadId: 't',
    fetch: async () => new Response(body, { headers }),
  });
  return client.runAgent({ runId: 'r1' }).then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}
