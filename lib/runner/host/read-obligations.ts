import * as z from 'zod';
import type { ObligationList } from '@/lib/protocol/read-models';
import { API_BASE } from '@/lib/protocol/version';
import type { Endpoint } from '@/lib/runner/outbox/send';

/** What an agent owes, as the server tells it. @see GET /agents/:id/reply-obligations */
export type OwedReply = ObligationList['obligations'][number];

const owedReply = z.looseObject({
  messageId: z.string(),
  sessionId: z.string(),
  from: z.looseObject({ kind: z.enum(['person', 'agent']), id: z.string() }),
  text: z.string(),
  sentAt: z.number(),
});

/** @throws Error when the server can't be asked or refuses */
export async function readObligations(endpoint: Endpoint, agentId: string, signal: AbortSignal): Promise<unknown> {
  const { url, token } = await endpoint();
  const path = `${API_BASE}/agents/${encodeURIComponent(agentId)}/reply-obligations`;
  const response = await fetch(url.replace(/\/+$/, '') + path, {
    headers: token ? { authorization: `Bearer ${token}` } : {},
    redirect: 'manual',
    signal,
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`${path} answered ${response.status}`);
  }
  return ((await response.json()) as { obligations?: unknown }).obligations;
}

export function parseObligation(item: unknown): OwedReply | null {
  const parsed = owedReply.safeParse(item);
  return parsed.success ? (parsed.data as OwedReply) : null;
}

/** The newest of these messages that a person in the session waits for a reply to, or null. */
export function latestOwed(owed: readonly OwedReply[], sessionId: string, among: readonly string[]): string | null {
  const ofSession = owed.filter(
    (one) => one.sessionId === sessionId && one.from.kind === 'person' && among.includes(one.messageId),
  );
  return (
    ofSession.reduce<OwedReply | null>((newest, one) => (newest && newest.sentAt >= one.sentAt ? newest : one), null)
      ?.messageId ?? null
  );
}
