import { API_BASE } from '@interlude/protocol/version';
import type { Method } from '@/lib/server/routes';
import type { BusyAgent } from './busy-agent';

/** Whose pages may show embeds of the servers that are asked. */
export const CONSOLE = 'https://console.example.com';
/** Secrets of the clock and of the monitor of those servers. */
export const CRON_SECRET = 'the-timer-of-this-test-0123456789';
export const METRICS_TOKEN = 'the-monitor-of-this-test-0123456789';

/** What must be sent with a request so that it is not refused for what it says. */
export function asked(method: Method, pattern: string, ids: BusyAgent): { query: string; body?: unknown } {
  const path = pattern.slice(API_BASE.length);
  const bodies: Record<string, unknown> = {
    'POST /sessions/:sessionId/messages': { text: 'Hello', clientId: crypto.randomUUID() },
    'POST /sessions/:sessionId/attachments': new TextEncoder().encode('words'),
    'PUT /sessions/:sessionId/wake-rule': { when: 'never' },
    'POST /sessions/:sessionId/requests/:requestId': { behavior: 'deny' },
    'PUT /agents/:agentId/log-level': { level: 'info' },
    'POST /inbox/marks': { ids: [ids.inboxId], mark: 'unseen' },
    'PUT /sessions/:sessionId/arrangement': { pinned: true },
    'POST /sessions/:sessionId/obligations/:messageId/accept': { candidateId: 'c' },
    'PUT /agents/:agentId/retirement': { retired: false },
    'POST /agents/:agentId/insights/seen': { upTo: '1' },
    'POST /agents/:agentId/parked/:position/assign': { sessionId: ids.sessionId },
    'POST /agents/:agentId/commands/:commandId/ack': { state: 'delivered' },
    'POST /agui/:agentId': { threadId: ids.sessionId, runId: 'r', messages: [] },
    'POST /agui/:agentId/connect': { threadId: ids.sessionId, runId: 'r', messages: [] },
    'POST /tokens': { role: 'viewer' },
    'POST /embed-tokens': { fleet: true, parentOrigin: CONSOLE },
    'PUT /members/:memberId': { blocked: true },
    'POST /events': {
      producer: { id: `${ids.agentId}/matrix`, epoch: 1 },
      records: [{ seq: 1, kind: 'status', agentId: ids.agentId, occurredAt: 1, status: {} }],
    },
  };
  const queries: Record<string, string> = {
    '/stream': '?topic=fleet',
    '/sessions/:sessionId/turn-at': '?at=1',
    '/sessions/:sessionId/attachments': '?name=a.txt',
    '/attachments/:hash': `?session=${ids.sessionId}`,
    '/agents/:agentId/commands': `?runner=r&startedAt=1`,
  };
  const key = `${method} ${path}`;
  return { query: queries[path] ?? '', ...(method === 'GET' || method === 'HEAD' ? {} : { body: bodies[key] ?? {} }) };
}

/** The path of a route, about what is given. */
export function filled(pattern: string, ids: BusyAgent): string {
  return pattern.replace(/:(\w+)/g, (_, name) => encodeURIComponent(ids[name as keyof BusyAgent] ?? 'some-id'));
}
